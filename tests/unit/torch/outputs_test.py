"""Whether the outputs of timed calls are right, and how long a first call may take."""

import types
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from fakes import judgement
    from kernelmill_torch import compare
    from kernelmill_torch.buffers import BufferSet
    from kernelmill_torch.judged import first_call_seconds


@unittest.skipIf(torch is None, "there is no torch here")
class FirstCall(unittest.TestCase):
    def test_waits_for_compilers_where_there_may_be_one(self):
        self.assertGreater(first_call_seconds("cuda", True), first_call_seconds("cuda", False))
        self.assertEqual(first_call_seconds("cpu", True), first_call_seconds("cpu", False))


@unittest.skipIf(torch is None, "there is no torch here")
class Outputs(unittest.TestCase):
    """Of batches of one call on one number, of which the model makes one more."""

    def setUp(self):
        self.ran, self.asked = [], []

    def bad(self, got, known=None):
        def shifts(contents, kind):
            self.asked.append((len(contents), kind))
            return [1000.0]  # terms that cancelled

        def run(drawn):
            self.ran.append(drawn)
            return [drawn[0] + 1.0]

        x = judgement(
            types.SimpleNamespace(
                device="cpu",
                is_random=False,
                shifts=shifts,
                forgive=lambda got, *_: got,
                can_ask_small_scales=lambda _inputs: False,
                problem=types.SimpleNamespace(run=run),
            )
        )
        x.timed_rules = {x.kind: [compare.Rule(1e-3, 1e-3)]}
        outputs = [BufferSet([], [torch.tensor([got])])]
        return x.count_bad([[torch.ones(1)]], outputs, 0, None if known is None else [torch.tensor([known])])

    def test_what_the_baseline_gave_is_right(self):
        self.assertEqual((self.bad(2.0, known=2.0), self.ran), (0, []))

    def test_what_a_baseline_that_gave_rubbish_calls_wrong_is_computed(self):
        self.assertEqual(self.bad(2.0, known=7.0), 0)
        self.assertEqual(len(self.ran), 1)
        self.assertGreater(self.bad(7.0), 0)

    def test_how_large_a_draws_outputs_are_is_asked_where_something_seems_wrong(self):
        self.assertEqual((self.bad(2.001), self.asked), (0, []))
        self.assertEqual((self.bad(2.5), self.asked), (0, [(1, "own")]))
        self.assertGreater(self.bad(5.0), 0)


if __name__ == "__main__":
    unittest.main()
