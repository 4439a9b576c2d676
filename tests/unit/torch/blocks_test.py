"""Blocks: what they find, and which kinds of contents come."""

import types
import unittest

try:
    import torch
    from fakes import BusyBench, FakeBench, judgement
    from kernelmill_torch import looks
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.judgement import Judgement
    from kernelmill_torch.watch import Free, Row
except ImportError:
    torch = None


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

    def test_finds_what_has_the_gpu_before_rows_of_either(self):
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
        kinds, unmet = [], True
        while unmet:
            found = x.block()
            unmet = found["unmet"]
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

    def test_one_row_that_others_made_longer_is_no_doubt(self):
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

    def test_a_candidate_that_begins_slowly_hides_no_kind(self):
        for slow_rows in ([9.0] * 2, [1.0, 9.0, 9.0]):  # of these some may have been taken again
            for slow in self.KINDS:
                own = iter(slow_rows)
                x = self.judged(
                    lambda kind, own=own, slow=slow: {"own": next(own, 1.0) if kind == "own" else 1.0, slow: 3.0}.get(
                        kind, 1.0
                    )
                )
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


if __name__ == "__main__":
    unittest.main()
