"""Which answers that know nothing of the inputs would be paid."""

import types
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from fakes import FakeBench, judgement
    from kernelmill_torch import compare
    from kernelmill_torch.problem import Truth
    from kernelmill_torch.problem_check import BLIND_DRAWS, BLIND_FAILURES, blind_answers, weigh_constants


@unittest.skipIf(torch is None, "there is no torch here")
class BlindAnswers(unittest.TestCase):
    def passing(self, ones, is_random=False):
        """Of a problem whose answer is one for as many seeds, and else zero: which answers pass,
        and how often it ran."""
        runs = []

        def run(seed):
            runs.append(seed)
            return [torch.full((3,), 1.0 if seed < ones else 0.0)]

        problem = types.SimpleNamespace(draw=lambda seed, _kind: seed, run=run)
        bench = types.SimpleNamespace(is_random=is_random, problem=problem)
        known = {"zeros": [None], "ones": [torch.ones(3)]}
        found = blind_answers(bench, known, lambda *_: [compare.Rule(1e-3, 1e-3)], range(BLIND_DRAWS))
        self.assertEqual(len(known), 2)
        return found, len(runs)

    def test_what_is_always_right_is_no_answer(self):
        self.assertEqual(self.passing(0), (["zeros"], BLIND_DRAWS))
        self.assertEqual(self.passing(BLIND_DRAWS), (["ones"], BLIND_DRAWS))

    def test_nor_is_what_is_nearly_always_right(self):
        self.assertEqual(self.passing(1)[0], ["zeros"])
        self.assertEqual(self.passing(BLIND_FAILURES - 1)[0], ["zeros"])

    def test_what_is_right_by_chance_is_found_out(self):
        self.assertEqual(self.passing(BLIND_FAILURES)[0], [])
        self.assertEqual(self.passing(BLIND_DRAWS // 2)[0], [])

    def test_what_cannot_be_compared_is_not_tried(self):
        self.assertEqual(self.passing(0, is_random=True), ([], 0))

    def test_what_they_are_held_by_is_learned_once_and_before_a_trial_holds_anything(self):
        class Drawn(Exception):
            pass

        for mode, index, asked in (
            ("honest", 0, ["own", "signs", "large"]),
            ("honest", 1, []),
            ("kernelbench", 0, ["own"]),
        ):
            x, done = judgement(FakeBench()), []

            def move():
                raise Drawn

            x.mode, x.bench.losses = mode, done.append
            x.bench.arena = types.SimpleNamespace(move=move)
            self.assertRaises(Drawn, x.trial, "trial", index)
            self.assertEqual(done, asked)


@unittest.skipIf(torch is None, "there is no torch here")
class Constants(unittest.TestCase):
    def notes(self, call, is_random=False):
        def draw(seed):
            torch.manual_seed(seed)
            return [torch.randn(64)]

        notes = []
        problem = types.SimpleNamespace(draw=draw, run=lambda inputs: [call(inputs[0])], is_random=is_random)
        weigh_constants(problem, Truth([call(draw(0)[0])]), notes)
        return notes

    def test_zeros_that_no_input_changes_are_said(self):
        (note,) = self.notes(torch.diag_embed)
        self.assertTrue(note.startswith("98% of output 0 is the same"), note)

    def test_zeros_that_come_and_go_are_none(self):
        self.assertEqual(self.notes(torch.relu), [])
        self.assertEqual(self.notes(torch.diag_embed, is_random=True), [])


if __name__ == "__main__":
    unittest.main()
