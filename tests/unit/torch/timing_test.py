"""What a baseline's failure is, what counts of rows that are disturbed, and what comes before a row."""

import types
import unittest

try:
    import torch
    from kernelmill_torch import compare, looks
    from kernelmill_torch import quiet as quiet_module
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.rows import Gateless
    from kernelmill_torch.buffers import BufferSet
    from kernelmill_torch.judged import first_call_seconds
    from kernelmill_torch.judgement import Judgement
    from kernelmill_torch.processes import Fault, Row
    from kernelmill_torch.quiet import RETAKES
    from kernelmill_torch.timed_rows import MemoryMoved
    from kernelmill_torch.watch import Free
    quiet_module.ALONE_SECONDS = 1e-3
except ImportError:
    torch = None


class Ended:
    def __init__(self):
        self.closed = self.is_working = False

    def output(self):
        return ""

    def close(self):
        self.closed = True


class FakeBench:
    """A bench whose baseline, once started again, runs or does not."""

    def __init__(self, alone_works):
        self.directory, self.baseline, self.baseline_seed, self.device = "problems/some", Ended(), 1, "cpu"
        self.alone_works, self.free = alone_works, Free()
        self.admitted, self.is_random = types.SimpleNamespace(others=["signs", "large"]), False

    def close_baseline(self):
        if self.baseline is not None:
            self.baseline.close()
            self.baseline = None

    def start_baseline(self, _pool, _seed, _seconds):
        self.baseline = Ended()
        return self.baseline

    def draw(self, seeds, _kind="own", _laws=()):
        return seeds

    def row(self, _process, _count, _seconds, _contents):
        if not self.alone_works:
            raise Fault("candidate", "runtime_error", "IndexError")

    def rouse(self):
        pass

    def longest_flush(self):
        return 1.0

    def blame_problem(self, e):
        return Bench.blame_problem(self, e)


def judgement(bench):
    result = Judgement(bench, None, None, {"seconds": 60, "seed": "00" * 32})
    result.process = Ended()
    return result


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


    def pairs_of(self, count, pair_of):
        """What counts of so many pairs."""
        x, calls = judgement(FakeBench(True)), iter(range(1000))

        def pair(_reference_first):
            x.watch.rows[1].append(Row(flushing=0.5))
            return pair_of(next(calls))

        x.pair = pair
        return [x.undisturbed_pair(True) for _ in range(count)]

    def test_who_is_fast_in_some_rows_only_is_paid_for_the_others_too(self):
        mine = [x[1] for x in self.pairs_of(24, lambda i: (2.0, 2.0 if i % 5 in (1, 3) else 1.0))]
        self.assertGreater(sum(x > 1.5 for x in mine), 6)

    def test_what_others_make_longer_is_taken_again_on_either_side(self):
        pairs = self.pairs_of(24, lambda i: (2.0 + (i % 5 == 1), 1.0 + (i % 5 == 3)))
        self.assertLess(sum(x != (2.0, 1.0) for x in pairs), 3)


class WatchedProcess:
    def __init__(self, name, done):
        self.name, self.arena = name, types.SimpleNamespace(move=lambda: None,
                                                      poison=lambda _count: done.append("poison of " + name))


class WatchedBench:
    """Writes down what is done to it, and when."""

    def __init__(self, small):
        self.is_aside, self.done = small, []
        self.device, self.samples, self.free = "cpu", None if small else "samples", Free()
        self.changed_inputs, self.changes_inputs, self.spoiled = [], False, None
        self.gives_inputs = False
        self.shares_arena, self.is_random = True, False
        self.baseline = WatchedProcess("baseline", self.done)
        self.contents, self.laws = [], []

    def make_room(self):
        self.done.append("room")

    def draw(self, seeds, kind, laws=()):
        self.done.append("draw")
        self.kind = kind
        self.laws.append(laws)
        self.contents.append(seeds)
        return seeds

    def row(self, process, _count, _seconds, contents, _is_gated=False, seed=0, is_apart=False):
        self.seed = seed
        self.done.append(process.name)
        assert contents == self.contents[-1]
        self.outputs = ["outputs of " + process.name]
        self.changed_inputs = [0] if process.name == self.spoiled else []
        return Row(calls=1.0)


class BusyBench(FakeBench):
    """A flush takes at most 1 s. Who is at work on the GPU: by turns in what is timed, and while flushes are to settle."""

    def __init__(self, settles, alone=((0.5,),)):
        super().__init__(True)
        self.usual_flush, self.settles, self.alone = 0.5, settles, list(alone)

    def flushes_settle(self):
        return self.settles.pop(0) if len(self.settles) > 1 else self.settles[0]

    def learn_costs(self, _process, _count, _seconds, _contents, _strict=False, _is_gated=False, _times=7):
        flushes = self.alone.pop(0) if len(self.alone) > 1 else self.alone[0]
        if isinstance(flushes, Fault):
            raise flushes
        return flushes


@unittest.skipIf(torch is None, "there is no torch here")
class BusyGpu(unittest.TestCase):
    BLAMED = ("candidate", "integrity"), ["background_work"]
    NOBODY = ("infrastructure", "gpu_disturbed"), []

    def work(self, takes, settles, alone=((0.5,),)):
        x = judgement(BusyBench(settles, alone))
        return self.outcome(x, lambda: x.quietly(lambda: takes.pop(0))), takes

    def outcome(self, x, work):
        try:
            work()
        except Fault as e:
            return (e.cls, e.category), [f["rule"] for f in x.findings]
        return None, [f["rule"] for f in x.findings]

    def test_nobody(self):
        self.assertEqual(self.work([[[0.5, 0.5, 2.0]]], []), ((None, []), []))

    def test_who_came_and_went_is_waited_for(self):
        self.assertEqual(self.work([[[2.0], [2.0]], [[0.5], [0.5]]], [True]), ((None, []), []))

    def test_who_is_there_until_the_candidate_ends_is_the_candidate(self):
        self.assertEqual(self.work([[[2.0]]], [False, True])[0], self.BLAMED)

    def test_who_comes_again_with_the_candidate_alone_is_the_candidate(self):
        self.assertEqual(self.work([[[2.0]]] * RETAKES, [True] * (RETAKES + 1))[0], self.BLAMED)

    def test_who_is_still_at_work_on_its_end_is_the_candidate(self):
        x = judgement(BusyBench([False, False]))
        x.process.is_working = True
        self.assertEqual(self.outcome(x, lambda: x.quietly(lambda: [[2.0]])), self.BLAMED)

    def test_who_is_there_before_there_is_a_candidate_is_somebody_else(self):
        x = judgement(BusyBench([False]))
        x.process = None
        self.assertEqual(self.outcome(x, lambda: x.quietly(lambda: [[2.0]])), self.NOBODY)

    def test_who_is_there_while_costs_are_learned_is_no_fault_of_the_problem(self):
        x = judgement(BusyBench([False, True], alone=[[2.0], [0.5]]))
        self.assertEqual(self.outcome(x, lambda: x.learn_costs([], 1.0)), self.BLAMED)

    def test_a_baseline_that_fails_while_costs_are_learned_fails_as_in_a_row(self):
        x = judgement(BusyBench([], alone=[Fault("candidate", "runtime_error", "IndexError")]))
        self.assertEqual(self.outcome(x, lambda: x.learn_costs([], 1.0)), (("configuration", "bad_problem"), []))

    def test_who_is_there_without_it_too_is_somebody_else(self):
        self.assertEqual(self.work([[[2.0]]], [False, False])[0], self.NOBODY)
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[0.5, 2.0]])[0], self.NOBODY)

    def test_a_flush_that_a_busy_core_made_long_excuses_no_candidate(self):
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[0.5] * 13 + [2.0]])[0], self.BLAMED)

    def test_many_long_flushes_without_it_are_somebody_elses(self):
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[0.5] * 9 + [2.0] * 5])[0], self.NOBODY)

    def test_what_a_candidate_leaves_behind_for_a_while_is_its_own(self):
        self.assertEqual(self.work([[[2.0]]], [False, False, True])[0], self.BLAMED)
        self.assertEqual(self.work([[[2.0]]], [False, True], alone=[[2.0], [0.5]])[0], self.BLAMED)

    def test_nothing_more_is_measured_in_a_block_that_is_done_again(self):
        x, done = judgement(BusyBench([False, True])), []
        x.row_length = 1

        def pair(_reference_first):
            for side in (0, 1):
                x.watch.rows[side].append(Row(flushing=2.0))
            return 2.0, 1.0

        x.undisturbed_pair, x.keep_apart, x.look_at_kinds = pair, lambda: done.append("apart"), lambda: done.append("looks")
        self.assertEqual((self.outcome(x, x.block), done), (self.BLAMED, []))


@unittest.skipIf(torch is None, "there is no torch here")
class Block(unittest.TestCase):
    """FakeBench says that a flush takes at most 1 s."""

    def rules(self, reference=None, candidate=None, blocks=4):
        reference, candidate = reference or Row(flushing=0.5), candidate or Row(flushing=0.5)
        x = judgement(BusyBench([True] * 99))
        x.row_length = 1

        def pair(_reference_first):
            x.watch.rows[0].append(reference)
            x.watch.rows[1].append(candidate)
            return 2.0, 1.0

        x.undisturbed_pair = pair
        try:
            for _ in range(blocks):
                found = x.block()
                self.assertEqual((found["reference"], found["candidate"], found["calls"]), ([2.0] * 2, [1.0] * 2, 2))
        except Fault as e:
            return (e.cls, e.category), [f["rule"] for f in x.findings]
        return [f["rule"] for f in x.findings]

    def test_of_honest_rows_finds_nothing(self):
        self.assertEqual(self.rules(), [])

    def test_finds_work_while_stopped_and_work_after_the_clock(self):
        self.assertEqual(self.rules(candidate=Row(flushing=0.5, awake=1e-3)), ["ran_while_stopped"])
        self.assertEqual(self.rules(candidate=Row(flushing=0.5, looking=1e-3)), ["unfinished_work"])

    def test_says_that_outputs_have_to_be_fetched(self):
        self.assertEqual(self.rules(candidate=Row(flushing=0.5, fetching=1e-3)), ["outputs_out_of_reach"])

    def test_finds_who_has_the_gpu_before_rows_of_either(self):
        blamed = ("candidate", "integrity"), ["background_work"]
        self.assertEqual(self.rules(reference=Row(flushing=2.0)), blamed)
        self.assertEqual(self.rules(candidate=Row(flushing=2.0)), blamed)


@unittest.skipIf(torch is None, "there is no torch here")
class KindsThatNoBlockHad(unittest.TestCase):
    KINDS = "constant held large near_one outliers rising signs small sparse".split()

    def judged(self, seconds_on):
        bench = BusyBench([True] * 999)
        bench.admitted, bench.free = types.SimpleNamespace(others=self.KINDS), Free()
        x = judgement(bench)
        x.row_length, x.asked = 1, []

        def pair(_reference_first):
            for side in (0, 1):
                x.watch.rows[side].append(Row(flushing=0.5))
            result = 2.0, seconds_on(x.kind)
            for past, seconds in zip(x.rows.setdefault(x.kind, ([], [])), result):
                past.append(seconds)
            return result

        def candidate_row(_seeds, _is_apart=False, _laws=()):
            x.asked.append(x.kind)
            x.watch.rows[1].append(Row(flushing=0.5))
            return Row(calls=seconds_on(x.kind)), lambda: x.asked.append("audit")

        x.undisturbed_pair, x.candidate_row = pair, candidate_row
        return x

    def test_each_comes_in_a_row_and_is_checked(self):
        x = self.judged(lambda _kind: 1.0)
        kinds = []
        while not kinds or found["unmet"]:
            found = x.block()
            kinds.append(found["kind"])
            self.assertEqual(x.kind, found["kind"])
        self.assertLess(len(kinds), 12)
        self.assertEqual(sorted({*kinds, *x.asked} - {"own", "audit"}), self.KINDS)
        self.assertEqual(x.asked[1::2], ["audit"] * (len(x.asked) // 2))
        self.assertEqual(len(set(x.asked[::2])), len(x.asked) // 2)  # once each
        self.assertNotIn(kinds[0], x.asked)  # nothing is looked at that a block had

    def test_one_that_is_slow_is_timed_next(self):
        for slow in self.KINDS:
            x = self.judged(lambda kind, slow=slow: 3.0 if kind == slow else 1.0)
            blocks = []
            while not blocks or blocks[-1]["unmet"]:
                blocks.append(x.block())
            found = [b for b in blocks if b["kind"] == slow]
            self.assertTrue(found)
            self.assertEqual(found[0]["candidate"], [3.0, 3.0])

    def test_one_that_is_a_tenth_slower_is_timed(self):
        x = self.judged(lambda kind: 1.1 if kind == "small" else 1.0)
        x.plan = iter(["own"] * 9)
        self.assertEqual([x.block()["kind"] for _ in range(3)], ["own", "small", "own"])

    def test_where_rows_of_the_baseline_differ_more_is_called_slow(self):
        self.assertEqual(looks.slow_times([2.0]), looks.SLOW)
        self.assertAlmostEqual(looks.slow_times([2.0, 2.02, 2.04]), looks.SLOW + 0.02 / 1.01)
        self.assertEqual(looks.slow_times([2.0, 3.0, 4.0]), looks.MOST_SLOW)

    def test_one_row_that_somebody_made_longer_is_no_doubt(self):
        times = iter([3.0, 1.0])
        x = self.judged(lambda kind: next(times, 1.0) if kind == "rising" else 1.0)
        x.plan = iter(["own"] * 9)
        while x.block()["unmet"]:
            pass
        self.assertEqual(x.asked.count("rising"), 2)

    def test_all_come_at_once_after_the_first_block_of_the_problems_own_contents(self):
        x = self.judged(lambda _kind: 1.0)
        x.plan = iter(["held", "own"])
        self.assertEqual(x.block()["unmet"], len(self.KINDS) - 1)
        self.assertEqual(x.block()["unmet"], 0)

    def test_who_begins_slowly_hides_no_kind(self):
        for slow_rows in ([9.0] * 2, [1.0, 9.0, 9.0]):  # of these some may have been taken again
            for slow in self.KINDS:
                own = iter(slow_rows)
                x = self.judged(lambda kind, own=own, slow=slow: {"own": next(own, 1.0) if kind == "own" else 1.0, slow: 3.0}.get(kind, 1.0))
                x.plan = iter(["own"] * 9)
                blocks = [x.block() for _ in range(6)]
                self.assertEqual([b["candidate"] for b in blocks if b["kind"] == slow], [[3.0, 3.0]], slow)
                self.assertEqual(x.asked.count(slow), looks.TRIES)
                self.assertEqual(blocks[-1]["unmet"], 0)

    def test_what_was_met_by_another_clock_comes_again(self):
        x = self.judged(lambda _kind: 1.0)
        x.plan = iter(["own"] * 9)
        first = x.block()["unmet"]
        x.use_clock(True)
        self.assertEqual(x.block()["unmet"], first)


@unittest.skipIf(torch is None, "there is no torch here")
class CallsApart(unittest.TestCase):
    def judged(self, apart, reference_apart=51e-6, device="cuda", length=20, alone=(26e-6,) * 12):
        bench = BusyBench([True] * 99)
        bench.device, bench.admitted, bench.free = device, types.SimpleNamespace(others=[]), Free(fixed=0.0)
        x = judgement(bench)
        x.row_length, x.asked, times, singles = length, [], list(apart), list(alone)

        def pair(_reference_first):
            for side in (0, 1):
                x.watch.rows[side].append(Row(flushing=0.5))
            for past, seconds in zip(x.rows.setdefault(x.kind, ([], [])), (50e-6, 25e-6)):
                past.append(seconds)
            return 50e-6, 25e-6

        def candidate_row(seeds, is_apart=False, laws=()):
            x.watch.rows[1].append(Row(flushing=0.5))
            if len(seeds) == 1 < length:
                return Row(calls=singles.pop(0)), lambda: None
            assert is_apart
            return Row(calls=times.pop(0) * length), lambda: x.asked.append("audit")

        x.undisturbed_pair, x.candidate_row, x.quietly = pair, candidate_row, lambda work: work()
        x.baseline_row = lambda seeds, is_apart=False, laws=(): Row(calls=reference_apart * length if len(seeds) == length else 55e-6)
        x.plan = iter(["own"] * 9)
        return x

    def test_what_ran_beside_others_is_charged(self):
        x = self.judged([51e-6, 51e-6, 90e-6] + [51e-6] * 9)
        self.assertEqual(x.block()["beside"], 0.0)  # of two rows nothing is known
        found = x.block()
        self.assertAlmostEqual(found["beside"], 25e-6)
        self.assertAlmostEqual(found["apart"], 51e-6)
        self.assertAlmostEqual(found["cost"], 1e-6)
        self.assertEqual(x.asked, ["audit"] * 12)  # nobody is charged by four rows
        x.block()
        self.assertEqual(len(x.asked), 12)

    def test_what_more_rows_do_not_show_is_not_charged(self):
        x = self.judged([51e-6] * 3 + [26e-6] * 9)
        x.block()
        self.assertEqual(x.block()["beside"], 0.0)
        self.assertGreater(len(x.asked), 4)

    def test_what_keeping_apart_costs_is_not(self):
        x = self.judged([26e-6] * 4)
        x.block()
        self.assertEqual(x.block()["beside"], 0.0)

    def test_calls_that_are_made_together_are_paid_as_one_alone(self):
        x = self.judged([26e-6] * 4, alone=[200e-6, 200e-6, 210e-6] + [200e-6] * 9)  # of 25 each in a row
        self.assertEqual(x.block()["beside"], 0.0)
        found = x.block()
        self.assertAlmostEqual(found["apart"], 200e-6)
        self.assertAlmostEqual(found["beside"], 150e-6)  # 25 are a launch's
        self.assertEqual(len(x.alone[1]), 12)
        self.assertEqual(len(x.watch.rows[1]), 8)  # two blocks' and four that are kept apart

    def test_so_they_are_on_a_cpu(self):
        x = self.judged([], device="cpu", alone=[200e-6] * 12)
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 150e-6)

    def test_a_launch_and_cold_caches_are_free(self):
        for alone in 50e-6, 55e-6:
            x = self.judged([26e-6] * 4, alone=[alone] * 12)
            x.block()
            self.assertEqual((x.block()["beside"], len(x.alone[1])), (0.0, 4))

    def test_work_before_the_clock_is_part_of_a_call_alone(self):
        x = self.judged([26e-6] * 4)
        row_of = x.candidate_row

        def early(seeds, is_apart=False, laws=()):
            row, check = row_of(seeds, is_apart, laws)
            return row._replace(revealing=1e-3 if len(seeds) == 1 else 0.0), check

        x.candidate_row = early
        x.block()
        self.assertGreater(x.block()["beside"], 9e-4)

    def test_rows_of_one_call_and_a_cpu_have_no_calls_side_by_side(self):
        for x in (self.judged([], length=1), self.judged([], device="cpu")):
            self.assertEqual((x.block()["apart"], x.block()["beside"]), (0.0, 0.0))


@unittest.skipIf(torch is None, "there is no torch here")
class PlanOfASecondLook(unittest.TestCase):
    KINDS = "constant held large near_one outliers rising signs small sparse".split()

    def look(self, seed="", plan=""):
        bench = FakeBench(True)
        bench.admitted.others = self.KINDS
        x = Judgement(bench, None, None, {"seconds": 60, "seed": seed, "plan": plan})
        if not seed:
            x.draw_secret()
        return x

    def order(self, x):
        return [x.next_kind() for _ in range(18)], x.plan_dice("looks").random()

    def test_has_the_kinds_of_the_first_and_other_contents(self):
        for _ in range(5):
            first = self.look()
            second = self.look(plan=first.secret[:8].hex())
            self.assertEqual(self.order(first), self.order(second))
            self.assertNotEqual(first.number("inputs", 0), second.number("inputs", 0))
            self.assertEqual(len(second.secret), 32)

    def test_other_candidates_have_another(self):
        self.assertGreater(len({str(self.order(self.look())) for _ in range(5)}), 1)

    def test_is_that_of_a_replay_too(self):
        second = self.look(plan="0011223344556677")
        self.assertEqual(self.order(second), self.order(self.look(seed=second.secret.hex())))


@unittest.skipIf(torch is None, "there is no torch here")
class OrderOfAPair(unittest.TestCase):
    def done(self, reference_first, small):
        bench = WatchedBench(small)
        x = judgement(bench)
        x.process, x.row_length = WatchedProcess("candidate", bench.done), 1
        audited = []
        x.audit = lambda contents, outputs, samples, _seed: (audited.append(contents), bench.done.append("audit of " + outputs[0]),
                                                      self.assertEqual(samples, bench.samples))
        self.assertEqual(x.pair(reference_first), (1.0, 1.0))
        self.assertEqual(audited, [bench.contents[1 if reference_first else 0]])
        self.assertNotEqual(bench.contents[0], bench.contents[1])  # the baseline's outputs are no help
        self.assertEqual(bench.laws[0], bench.laws[1])  # and a call takes no longer for either by the dice
        self.assertEqual(len(set(bench.laws[0])), 1)
        return bench.done

    def test_what_comes_before_a_row_does_not_depend_on_whose_it_is(self):
        baseline, candidate = (["room", "draw", "poison of " + x, x] for x in ("baseline", "candidate"))
        audit = "audit of outputs of candidate"
        self.assertEqual(self.done(True, small=True), [*baseline, *candidate, audit])
        self.assertEqual(self.done(False, small=True), [*candidate, *baseline, audit])

    def test_a_short_row_of_the_baseline_comes_where_its_row_comes_in_the_other_order(self):
        lengths = []
        for reference_first in True, False:
            bench = WatchedBench(True)
            bench.device = "cuda"
            x = judgement(bench)
            x.process, x.row_length, x.audit = WatchedProcess("candidate", bench.done), 8, lambda *_: bench.done.append("audit")
            x.pair(reference_first)
            lengths.append([(y, len(bench.contents[i])) for i, y in enumerate(z for z in bench.done if z in ("baseline", "candidate"))])
            self.assertEqual(bench.done[-1], "audit")
            self.assertEqual(([1.0], [1.0]), (x.intercept.long, x.intercept.short))
            self.assertEqual(len({str(z) for z in sum(bench.contents, [])}), 18)  # all of its own
        self.assertEqual(lengths, [[("baseline", 8), ("candidate", 8), ("baseline", 2)],
                                   [("baseline", 2), ("candidate", 8), ("baseline", 8)]])

    def test_what_is_too_large_to_put_aside_is_audited_before_the_candidate_could_change_it(self):
        audit = ["candidate", "audit of outputs of candidate"]
        done = self.done(False, small=False)
        self.assertEqual(done[3:5], audit)
        self.assertEqual(done[-1], "baseline")
        self.assertEqual(self.done(True, small=False)[-2:], audit)

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
                bench.changes_inputs = bench.shares_arena = False  # nobody else could
            x.pair(True)
            self.assertEqual([f["rule"] for f in x.findings], rules)


class GatedBench(BusyBench):
    """Its baseline can queue so many calls."""

    def __init__(self, most):
        super().__init__([True] * 99)
        self.device, self.most, self.lengths, self.strict = "cuda", most, [], []
        self.free = Free(fixed=0.0, most_fixed=1.0)

    def learn_costs(self, _process, count, _seconds, _contents, strict=False, is_gated=False, _times=7):
        self.lengths.append((count, is_gated))
        self.strict.append(strict)
        if is_gated and count > self.most:
            raise Gateless
        return [0.5]


@unittest.skipIf(torch is None, "there is no torch here")
class Gate(unittest.TestCase):
    def judgement(self, most):
        x = judgement(GatedBench(most))
        x.bench.admitted = types.SimpleNamespace(others=[])
        x.row_length, x.is_gated = 16, True
        return x

    def test_a_row_has_as_many_calls_as_the_baseline_can_queue(self):
        x = self.judgement(most=4)
        x.learn_costs([], 1.0)
        self.assertEqual((x.row_length, x.clock), (4, "device"))

    def test_what_cannot_queue_any_is_timed_with_launches(self):
        x = self.judgement(most=0)
        x.learn_costs([], 1.0)
        self.assertEqual((x.row_length, x.clock), (16, "call"))
        self.assertEqual(x.bench.lengths, [(16, True), (4, True), (1, True), (16, False)])

    def blocks(self, gateless, count):
        """A judgement after some blocks, and what they gave; calls cannot be queued in pairs of some numbers."""
        x, number = self.judgement(most=16), 0
        x.bench.draw = lambda seeds, _kind="own", _laws=(): seeds

        def rows(_reference_first):
            nonlocal number
            number += 1
            if x.is_gated and number in gateless:
                raise Gateless
            for kind in x.watch.rows:
                kind.append(Row(flushing=0.5))
            return (3.0, 3.0) if x.is_gated else (2.0, 1.0)

        x.rows_of_pair, x.rows_apart, x.rows_of_one = rows, lambda: None, lambda: [kind.append(Row()) for kind in x.alone]
        return x, [x.block() for _ in range(count)]

    def test_a_candidate_that_waits_in_a_call_is_timed_with_launches_from_then_on(self):
        for gateless in range(1, 9), range(3, 9), range(4, 9):  # in the first block, or either pair of the second
            x, (*_, last) = self.blocks(gateless, 2)
            self.assertEqual((last["clock"], last["reference"], last["candidate"]), ("call", [2.0] * 2, [1.0] * 2))
            self.assertEqual(x.bench.lengths, [(16, False)])

    def test_calls_that_could_not_be_queued_once_are_queued_again(self):
        x, blocks = self.blocks([2, 5], 2)
        self.assertEqual([one["clock"] for one in blocks], ["device"] * 2)
        self.assertEqual(x.bench.lengths, [])

    def test_a_candidate_cannot_choose_its_rows_by_that(self):
        x, blocks = self.blocks([2, 5, 7, 9], 3)
        self.assertEqual([one["clock"] for one in blocks], ["device", "device", "call"])

    def test_who_pays_for_each_part_of_a_row_does_so_by_either_clock(self):
        x, _ = self.blocks([], 1)
        x.is_strict = True
        x.leave_gate()
        self.assertEqual(x.bench.strict, [True])

    def test_a_candidate_that_cannot_queue_has_no_other_clock(self):
        x, _ = self.blocks([], 1)
        x.use_clock(False)
        x.undisturbed_pair = lambda _first: x.pair(True)
        x.rows_of_pair = self.blocks(range(99), 0)[0].rows_of_pair
        self.assertIsNone(x.other_clock())

    def test_nobody_is_late_for_the_other_clock(self):
        for category, raises in ("timed_out", False), ("wrong_result", True):
            x, _ = self.blocks([], 1)
            x.use_clock(False)

            def late(_first):
                raise Fault("candidate", category, "")

            x.undisturbed_pair = late
            if raises:
                self.assertRaises(Fault, x.other_clock)
            else:
                self.assertIsNone(x.other_clock())

    def test_random_numbers_are_not_drawn_before_the_clock_starts(self):
        for is_random in True, False:
            bench = GatedBench(16)
            bench.is_random = is_random
            x = Judgement(bench, None, None, {"seconds": 60, "clock": "device"})
            self.assertEqual(x.is_gated, not is_random)
            x.row_length, x.undisturbed_pair = 16, lambda _first: (2.0, 1.0)
            self.assertEqual(x.other_clock() is None, is_random)

    def test_costs_are_learned_by_each_clock_before_there_is_a_candidate(self):
        for is_gated, clock in (True, "device"), (False, "call"):
            x = self.judgement(most=16)
            x.bench.row_length, x.bench.learned, x.is_gated, x.process = 16, {"call", "device"} - {clock}, is_gated, None
            x.bench.layout, x.bench.row = types.SimpleNamespace(sets=16), lambda *_: None
            x.learn_quietly()
            self.assertEqual((x.bench.lengths, x.bench.learned), ([(16, is_gated)], {"call", "device"}))
            x.learn_quietly()
            self.assertEqual(len(x.bench.lengths), 1)

    def test_random_numbers_of_the_first_row_are_the_models(self):
        for is_random, wanted in (True, True), (False, False):
            x, seeds = self.judgement(most=16), []
            x.bench.is_random, x.bench.outputs, x.bench.make_room = is_random, [], lambda: None
            x.bench.draw = lambda seeds: seeds
            x.bench.row = lambda *given: seeds.append(given[-1])
            x.count_bad = lambda _contents, _outputs, seed: seeds.append(seed) or 0
            x.warm_up(list(range(16)), [[]] * 16)
            self.assertEqual((bool(seeds[0]), seeds[0], len(seeds)), (wanted, seeds[1], 2))
            self.assertEqual(x.row_length, 16)

    def test_the_clock_that_is_not_paid_is_the_lower_quarter_of_a_few_pairs_but_the_first(self):
        x, pairs = self.judgement(most=16), iter([(0.5, 0.5), (2.0, 1.0), (4.0, 3.0), (6.0, 5.0), (3.0, 2.0), (9.0, 9.0)])
        x.is_gated = False
        x.undisturbed_pair = lambda _first: next(pairs)
        self.assertEqual(x.other_clock(), {"clock": "device", "reference": 3.0, "candidate": 2.0})

    def test_there_is_none_where_calls_cannot_be_queued(self):
        x = self.judgement(most=0)
        x.is_gated = False
        self.assertIsNone(x.other_clock())


@unittest.skipIf(torch is None, "there is no torch here")
class Audit(unittest.TestCase):
    """Of rows of one call on one number, of which the model makes one more."""

    def audit(self, got, moved, is_gated=False):
        x = judgement(types.SimpleNamespace(
            device="cpu", is_random=False, problem=types.SimpleNamespace(run=lambda drawn: [drawn[0] + 1.0])))
        x.kind = getattr(self, "kind", "own")
        x.is_right_untimed = lambda: self.is_right
        x.timed_rules = {x.kind: [compare.Rule(1e-3, 1e-3)]}
        x.process.reach, x.is_gated = types.SimpleNamespace(moved=lambda: moved), is_gated
        try:
            x.audit([[torch.ones(1)]], [BufferSet([], [torch.tensor([got])])], None)
        except (Fault, Gateless, MemoryMoved) as e:
            return type(e).__name__, [f["rule"] for f in x.findings]
        return "right", x.findings

    def test_what_is_right_is_right_wherever_it_lies(self):
        self.assertEqual(self.audit(2.0, moved=True), ("right", []))

    def test_what_is_wrong_is_looked_for_elsewhere(self):
        self.assertEqual(self.audit(1.0, moved=True), ("MemoryMoved", []))
        self.assertEqual(self.audit(1.0, moved=False), ("Fault", ["wrong_when_timed"]))

    def test_what_is_wrong_on_other_contents_is_no_cheat_where_it_is_so_untimed(self):
        for is_right, rules in (True, ["wrong_when_timed"]), (False, []):
            self.kind, self.is_right = "held", is_right
            self.assertEqual(self.audit(1.0, moved=False), ("Fault", rules))

    def test_nobody_is_blamed_for_what_is_wrong_behind_the_gate_alone(self):
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
