"""Pairs of rows: what comes before each, whose failure it is, and whether outputs are right."""

import types
import unittest
import weakref

try:
    import torch
    from fakes import FakeBench, WatchedBench, WatchedProcess, judgement
    from kernelmill_torch import compare
    from kernelmill_torch.buffers import BufferSet
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.judged import first_call_seconds
    from kernelmill_torch.rows import Gateless
    from kernelmill_torch.timed_rows import MemoryMoved
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "there is no torch here")
class BaselineFault(unittest.TestCase):
    def fault(self, category, alone_works):
        bench = FakeBench(alone_works)
        x = judgement(bench)
        first, candidate = bench.baseline, x.process
        fault = x.fault_of_baseline(Fault("candidate", category, "the problem's own model failed"))
        self.assertTrue(first.closed)  # it may be broken for good
        return fault, x, bench, candidate

    def test_it_is_the_problems_until_a_control_says_otherwise(self):
        fault, _, bench, candidate = self.fault("runtime_error", alone_works=False)
        self.assertEqual((fault.cls, fault.category), ("configuration", "bad_problem"))
        self.assertIsNone(bench.baseline)
        self.assertFalse(candidate.closed)

    def test_too_little_memory_is_ours_until_then(self):
        fault, _, _, _ = self.fault("out_of_memory", alone_works=True)
        self.assertEqual((fault.cls, fault.category), ("infrastructure", "gpu_memory"))


@unittest.skipIf(torch is None, "there is no torch here")
class FirstCall(unittest.TestCase):
    def test_waits_for_compilers_where_there_may_be_one(self):
        self.assertGreater(first_call_seconds("cuda", True), first_call_seconds("cuda", False))
        self.assertEqual(first_call_seconds("cpu", True), first_call_seconds("cpu", False))


@unittest.skipIf(torch is None, "there is no torch here")
class OrderOfAPair(unittest.TestCase):
    def done(self, reference_first, small):
        bench = WatchedBench(small)
        x = judgement(bench)
        x.process, x.row_length = WatchedProcess("candidate", bench.done), 1
        audited = []
        x.audit = lambda contents, outputs, samples, _seed: (
            audited.append(contents),
            bench.done.append("audit of " + outputs[0]),
            self.assertEqual(samples, bench.samples),
        )
        self.assertEqual(x.pair(reference_first), (1.0, 1.0))
        self.assertEqual(audited, [bench.contents[1 if reference_first else 0]])
        self.assertNotEqual(bench.contents[0], bench.contents[1])  # the baseline's outputs are no help
        self.assertEqual(bench.laws[0], bench.laws[1])  # and a call takes no longer for either by the dice
        self.assertEqual(len(set(bench.laws[0])), 1)
        return bench.done

    def test_what_comes_before_a_row_does_not_depend_on_whose_it_is(self):
        baseline, candidate = (["draw", "poison of " + x, x] for x in ("baseline", "candidate"))
        audit = "audit of outputs of candidate"
        self.assertEqual(self.done(True, small=True), [*baseline, *candidate, audit])
        self.assertEqual(self.done(False, small=True), [*candidate, *baseline, audit])

    def test_a_short_row_of_the_baseline_comes_where_its_row_comes_in_the_other_order(self):
        lengths = []
        for reference_first in True, False:
            bench = WatchedBench(True)
            bench.device = "cuda"
            x = judgement(bench)
            x.process, x.row_length, x.audit = (
                WatchedProcess("candidate", bench.done),
                8,
                lambda *_: bench.done.append("audit"),
            )
            x.pair(reference_first)
            lengths.append(
                [
                    (y, len(bench.contents[i]))
                    for i, y in enumerate(z for z in bench.done if z in ("baseline", "candidate"))
                ]
            )
            self.assertEqual(bench.done[-1], "audit")
            self.assertEqual(([1.0], [1.0]), (x.intercept.long, x.intercept.short))
            self.assertEqual(len({str(z) for z in sum(bench.contents, [])}), 18)  # all of its own
            bench.flushing = 2.0  # another program has the GPU
            x.pair(reference_first)
            self.assertEqual(([1.0], [1.0]), (x.intercept.long, x.intercept.short))
        self.assertEqual(
            lengths,
            [
                [("baseline", 8), ("candidate", 8), ("baseline", 2)],
                [("baseline", 2), ("candidate", 8), ("baseline", 8)],
            ],
        )

    def test_what_is_too_large_to_put_aside_is_audited_before_the_candidate_could_change_it(self):
        audit = ["candidate", "audit of outputs of candidate"]
        done = self.done(False, small=False)
        self.assertEqual(done[2:4], audit)
        self.assertEqual(done[-1], "baseline")
        self.assertEqual(self.done(True, small=False)[-2:], audit)

    def test_a_candidate_that_finds_too_little_memory_beside_what_we_keep_has_a_row_of_new_contents(self):
        for spare, times, lacks in (1 << 30, 2, False), (1 << 30, 3, True), (1 << 20, 1, True):
            for name in "candidate", "baseline":
                bench = WatchedBench(True)
                x, released = judgement(bench), []
                x.process, x.row_length, x.audit = WatchedProcess("candidate", bench.done), 1, lambda *_: None
                bench.spare_bytes, row, left, latest = lambda spare=spare: spare, bench.row, [times], [None]

                class Contents(list):
                    """A reference to one of them could keep what is to be given back."""

                def release(released=released, latest=latest):
                    self.assertIsNone(latest[0]())
                    released.append(1)

                def draw(seeds, kind, laws=(), was=bench.draw, latest=latest):
                    drawn = Contents(was(seeds, kind, laws))
                    latest[0] = weakref.ref(drawn)
                    return drawn

                bench.release, bench.draw = release, draw

                def short_of_memory(process, *given, name=name, row=row, left=left):
                    if process.name == name and left[0]:
                        left[0] -= 1
                        raise Fault("candidate", "out_of_memory", "")
                    return row(process, *given)

                bench.row, x.fault_of_baseline = short_of_memory, lambda e: e
                if lacks:
                    self.assertRaises(Fault, x.pair, True)
                else:
                    self.assertEqual(x.pair(True), (1.0, 1.0))
                self.assertEqual(len(released), 2 if spare > 1 << 20 else 0)
                self.assertEqual(len({str(seeds) for seeds in bench.contents}), len(bench.contents))

    def test_an_output_that_is_an_input_is_no_work(self):
        bench = WatchedBench(True)
        bench.gives_inputs = True
        x = judgement(bench)
        x.process, x.row_length, x.audit = WatchedProcess("candidate", bench.done), 1, lambda *_: None
        x.pair(True)
        self.assertEqual([f["rule"] for f in x.findings], ["output_is_input"])

    def test_inputs_that_change_in_a_row_are_the_candidates_doing(self):
        for spoiled, rules in ("candidate", ["input_overwrite"]), ("baseline", ["background_work"]):
            bench = WatchedBench(True)
            bench.spoiled = spoiled
            x = judgement(bench)
            x.process, x.row_length, x.audit = WatchedProcess("candidate", bench.done), 1, lambda *_: None
            if spoiled == "baseline":
                with self.assertRaises(Fault):
                    x.pair(True)
                bench.changes_inputs = True  # the model does so itself
                x.pair(True)
                bench.changes_inputs = bench.shares_arena = False  # no other check could
            x.pair(True)
            self.assertEqual([f["rule"] for f in x.findings], rules)


@unittest.skipIf(torch is None, "there is no torch here")
class Audit(unittest.TestCase):
    """Of rows of one call on one number, of which the model makes one more."""

    def audit(self, got, moved, is_gated=False, shifts=lambda *_: []):
        x = judgement(
            types.SimpleNamespace(
                device="cpu",
                is_random=False,
                shifts=shifts,
                forgive=lambda got, *_: got,
                can_ask_small_scales=lambda _inputs: False,
                problem=types.SimpleNamespace(run=lambda drawn: [drawn[0] + 1.0]),
            )
        )
        x.kind = getattr(self, "kind", "own")
        x.is_right_untimed = lambda: self.is_right
        x.timed_rules = {x.kind: [compare.Rule(1e-3, 1e-3)]}
        x.process.reach, x.is_gated = types.SimpleNamespace(moved=lambda: moved), is_gated
        try:
            x.audit([[torch.ones(1)]], [BufferSet([], [torch.tensor([got])])], None)
        except (Fault, Gateless, MemoryMoved) as e:
            return type(e).__name__, [f["rule"] for f in x.findings]
        return "right", x.findings

    def test_a_draw_without_an_answer_says_nothing_of_which_side_is_wrong(self):
        for answers, said in ([None, None, True], True), ([None, False], False), ([None] * 99, False):
            x, asked = judgement(types.SimpleNamespace(device="cpu", is_random=False)), []
            x.kind, x.timed = "steep", 5
            x.trial = lambda _name, index, _kind, answers=iter(answers): asked.append(index) or next(answers)
            self.assertEqual(x.is_right_untimed(), said)
            self.assertEqual(len(set(asked)), len(asked))

    def test_what_is_right_is_right_wherever_it_lies(self):
        self.assertEqual(self.audit(2.0, moved=True), ("right", []))

    def test_how_large_a_draws_outputs_are_is_asked_where_something_seems_wrong(self):
        asked = []

        def shifts(contents, kind):
            asked.append((len(contents), kind))
            return [1000.0]  # terms that cancelled

        self.assertEqual(self.audit(2.001, True, shifts=shifts), ("right", []))
        self.assertEqual(asked, [])
        self.assertEqual(self.audit(2.5, True, shifts=shifts), ("right", []))
        self.assertEqual(asked, [(1, "own")])
        self.assertEqual(self.audit(5.0, True, shifts=shifts), ("MemoryMoved", []))

    def test_what_is_wrong_is_looked_for_elsewhere(self):
        self.assertEqual(self.audit(1.0, moved=True), ("MemoryMoved", []))
        self.assertEqual(self.audit(1.0, moved=False), ("Fault", ["wrong_when_timed"]))

    def test_what_is_wrong_on_other_contents_is_no_cheat_where_it_is_so_untimed(self):
        for is_right, rules in (True, ["wrong_when_timed"]), (False, []):
            self.kind, self.is_right = "held", is_right
            self.assertEqual(self.audit(1.0, moved=False), ("Fault", rules))

    def test_no_candidate_is_blamed_for_what_is_wrong_behind_the_gate_alone(self):
        self.assertEqual(self.audit(1.0, moved=False, is_gated=True), ("Gateless", []))

    def test_a_pair_whose_outputs_moved_is_taken_again(self):
        x, takes = judgement(FakeBench(True)), [MemoryMoved(), MemoryMoved(), (2.0, 1.0)]

        def rows(_reference_first):
            if isinstance(takes[0], Exception):
                raise takes.pop(0)
            return takes.pop(0)

        x.rows_of_pair = rows
        self.assertEqual((x.pair(True), takes), ((2.0, 1.0), []))


if __name__ == "__main__":
    unittest.main()
