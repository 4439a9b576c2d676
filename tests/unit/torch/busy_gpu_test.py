"""Other programs were at work on the GPU or had the core: which rows count then."""

import itertools
import types
import unittest
import unittest.mock

try:
    import torch
    from fakes import BusyBench, FakeBench, judgement
    from kernelmill_torch import timed_rows
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.quiet import RETAKES
    from kernelmill_torch.watch import Row
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "there is no torch here")
class DisturbedPairs(unittest.TestCase):
    def take(self, flushes, pairs):
        x = judgement(FakeBench(True))
        taken = iter(zip(flushes, pairs))

        def pair(_reference_first):
            flush, seconds = next(taken)
            x.watch.rows[1].append(Row(flushing=flush))
            return seconds

        x.pair = pair
        return x.undisturbed_pair(True), len(list(taken))

    def test_the_first_that_is_not_disturbed_counts(self):
        pair, left = self.take([2.0, 0.5, 0.5], [(9.0, 9.0), (1.0, 2.0), (1.0, 1.0)])
        self.assertEqual((pair, left), ((1.0, 2.0), 1))

    def test_of_disturbed_ones_the_shortest_of_each_kind(self):
        pair, left = self.take([2.0] * RETAKES, [(3.0, 2.0), (1.0, 5.0), (4.0, 4.0)])
        self.assertEqual((pair, left), ((1.0, 2.0), 0))

    def test_what_takes_long_is_not_taken_again(self):
        now = itertools.count(step=timed_rows.RETAKE_SECONDS)  # each look at the clock is so much later
        with unittest.mock.patch.object(timed_rows.time, "monotonic", lambda: next(now)):
            pair, left = self.take([2.0] * RETAKES, [(3.0, 2.0), (1.0, 5.0), (4.0, 4.0)])
        self.assertEqual((pair, left), ((3.0, 2.0), RETAKES - 1))

    def pairs_of(self, count, pair_of):
        """What counts of so many pairs."""
        x, calls = judgement(FakeBench(True)), iter(range(1000))

        def pair(_reference_first):
            x.watch.rows[1].append(Row(flushing=0.5))
            return pair_of(next(calls))

        x.pair = pair
        return [x.undisturbed_pair(True) for _ in range(count)]

    def test_a_candidate_that_is_fast_in_some_rows_only_is_paid_for_the_others_too(self):
        mine = [x[1] for x in self.pairs_of(24, lambda i: (2.0, 2.0 if i % 5 in (1, 3) else 1.0))]
        self.assertGreater(sum(x > 1.5 for x in mine), 6)

    def test_what_others_make_longer_is_taken_again_on_either_side(self):
        pairs = self.pairs_of(24, lambda i: (2.0 + (i % 5 == 1), 1.0 + (i % 5 == 3)))
        self.assertLess(sum(x != (2.0, 1.0) for x in pairs), 3)


@unittest.skipIf(torch is None, "there is no torch here")
class BusyGpu(unittest.TestCase):
    BLAMED = ("candidate", "integrity"), ["background_work"]
    NOT_BLAMED = ("infrastructure", "gpu_disturbed"), []

    def work(self, takes, settles, alone=((0.5,),)):
        x = judgement(BusyBench(settles, alone))
        return self.outcome(x, lambda: x.quietly(lambda: takes.pop(0))), takes

    def outcome(self, x, work):
        try:
            work()
        except Fault as e:
            return (e.cls, e.category), [f["rule"] for f in x.findings]
        return None, [f["rule"] for f in x.findings]

    def test_no_other(self):
        self.assertEqual(self.work([[[0.5, 0.5, 2.0]]], []), ((None, []), []))

    def test_work_that_came_and_went_is_waited_for(self):
        self.assertEqual(self.work([[[2.0], [2.0]], [[0.5], [0.5]]], [True]), ((None, []), []))

    def test_work_that_lasts_until_the_candidate_ends_is_the_candidates(self):
        self.assertEqual(self.work([[[2.0]]], [False, True])[0], self.BLAMED)

    def test_work_that_comes_again_with_the_candidate_alone_is_the_candidates(self):
        self.assertEqual(self.work([[[2.0]]] * RETAKES, [True] * (RETAKES + 1))[0], self.BLAMED)

    def test_work_that_lasts_at_its_end_is_the_candidates(self):
        x = judgement(BusyBench([False, False]))
        x.process.is_working = True
        self.assertEqual(self.outcome(x, lambda: x.quietly(lambda: [[2.0]])), self.BLAMED)

    def test_work_before_there_is_a_candidate_is_another_programs(self):
        x = judgement(BusyBench([False]))
        x.process = None
        self.assertEqual(self.outcome(x, lambda: x.quietly(lambda: [[2.0]])), self.NOT_BLAMED)

    def test_work_while_costs_are_learned_is_no_fault_of_the_problem(self):
        x = judgement(BusyBench([False, True], alone=[[2.0], [0.5]]))
        self.assertEqual(self.outcome(x, lambda: x.learn_costs([], 1.0)), self.BLAMED)

    def test_a_baseline_that_fails_while_costs_are_learned_fails_as_in_a_row(self):
        x = judgement(BusyBench([], alone=[Fault("candidate", "runtime_error", "IndexError")]))
        self.assertEqual(self.outcome(x, lambda: x.learn_costs([], 1.0)), (("configuration", "bad_problem"), []))

    def test_work_that_is_there_without_it_too_is_another_programs(self):
        self.assertEqual(self.work([[[2.0]]], [False, False])[0], self.NOT_BLAMED)
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[0.5, 2.0]])[0], self.NOT_BLAMED)

    def test_a_flush_that_a_busy_core_made_long_excuses_no_candidate(self):
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[0.5] * 13 + [2.0]])[0], self.BLAMED)

    def test_many_long_flushes_without_it_are_another_programs(self):
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[0.5] * 9 + [2.0] * 5])[0], self.NOT_BLAMED)

    def test_no_candidate_is_blamed_without_a_look(self):
        with unittest.mock.patch("kernelmill_torch.quiet.ALONE_SECONDS", 0.0):  # this process was stopped meanwhile
            self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[0.5, 2.0]])[0], self.NOT_BLAMED)

    def test_what_a_candidate_leaves_behind_for_a_while_is_its_own(self):
        self.assertEqual(self.work([[[2.0]]], [False, False, True])[0], self.BLAMED)
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[2.0], [0.5]])[0], self.BLAMED)

    def test_work_that_pauses_for_a_moment_is_not_gone(self):
        for long, rests in (0, True), (2, True), (6, False):  # of some ten flushes in a second
            bench, flushes = Bench.__new__(Bench), iter([2.0] * long + [0.5] * 99)
            bench.device, bench.usual_flush, bench.flush = "cuda", 0.5, lambda: next(flushes)
            with unittest.mock.patch("kernelmill_torch.rows.time.monotonic", itertools.count(0, 0.1).__next__):
                self.assertEqual(bench.rests(), rests)

    def test_a_late_launch_of_a_flush_is_no_work_and_a_late_gpu_is_another_programs(self):
        now = [0.0]

        class Memory:
            """In seconds: what a launch takes, and until when the GPU is at work."""

            def __init__(self, launch, work):
                self.launch, self.work, self.until = launch, work, 0.0

            def __getitem__(self, part):
                return self if part.stop != 64 else Memory(0.0, 0.0)

            def view(self, _type):
                return self

            def sum(self):
                now[0] += self.launch
                self.until = now[0] + self.work

            def zero_(self):
                pass

            def fill_(self, _value):
                pass

        for launch, work, seconds in (0.5, 2.0, 2.0), (0.0, 2.0, 2.0), (0.0, 7.0, 7.0):
            bench = Bench.__new__(Bench)
            bench.device, bench.flush_buffer, bench.cache_bytes = "cuda", Memory(launch, work), 0
            bench.lib, bench.layout = (
                types.SimpleNamespace(km_gpu_unpin=lambda: None),
                types.SimpleNamespace(left_to_write=lambda *_: 1),
            )
            bench.synchronize = lambda bench=bench: now.__setitem__(0, max(now[0], bench.flush_buffer.until))
            with unittest.mock.patch("kernelmill_torch.rows.time.monotonic", lambda: now[0]):
                self.assertEqual(bench.flush(1), seconds)

    def test_nothing_more_is_measured_in_a_block_that_is_done_again(self):
        x, done = judgement(BusyBench([False, True])), []
        x.row_length = 1

        def pair(_reference_first):
            for side in (0, 1):
                x.watch.rows[side].append(Row(flushing=2.0))
            return 2.0, 1.0

        x.undisturbed_pair, x.keep_apart, x.look_at_kinds = (
            pair,
            lambda: done.append("apart"),
            lambda: done.append("looks"),
        )
        self.assertEqual((self.outcome(x, x.block), done), (self.BLAMED, []))


if __name__ == "__main__":
    unittest.main()
