"""Calls that are queued behind the gate, and the two clocks."""

import gc
import types
import unittest
import unittest.mock
import weakref

try:
    import torch
    from fakes import GatedBench, judgement
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.judgement import Judgement
    from kernelmill_torch.rows import Gateless
    from kernelmill_torch.watch import Row
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "there is no torch here")
class Gate(unittest.TestCase):
    def judgement(self, most):
        x = judgement(GatedBench(most))
        x.bench.admitted, x.pool = types.SimpleNamespace(others=[]), types.SimpleNamespace(settle=lambda: None)
        x.row_length, x.is_gated, x.bench.can_queue_rows = 16, True, False
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

        x.rows_of_pair, x.rows_apart, x.rows_of_one = (
            rows,
            lambda: None,
            lambda: [kind.append(Row()) for kind in x.alone],
        )
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

    def test_memory_is_given_back_where_calls_behind_the_gate_lacked_it(self):
        x, rooms, process = self.judgement(most=16), [], types.SimpleNamespace(alive=lambda: True, stop=lambda: None)
        x.bench.make_room = lambda: rooms.append(1)
        process.release = unittest.mock.Mock(
            side_effect=[Fault("candidate", "out_of_memory", ""), Fault("candidate", "runtime_error", ""), 1.0]
        )
        queued = iter([False, False, True])
        self.assertEqual(x.again_where_it_counts_for_nothing(lambda: Bench.open_gate(process, next(queued), 1.0)), 1.0)
        self.assertEqual(rooms, [1])

    def fail_for_memory(self):
        raise Fault("candidate", "out_of_memory", "")

    def test_what_a_row_had_is_gone_when_it_is_told_that_calls_were_not_queued(self):
        class Contents:
            pass

        latest = []

        def row():
            contents = Contents()
            latest[:] = [weakref.ref(contents)]
            process = types.SimpleNamespace(alive=lambda: True, release=lambda *_: self.fail_for_memory())
            return Bench.open_gate(process, False, 1.0), contents

        x, left = self.judgement(most=16), []
        x.bench.make_room = lambda: left.append(latest[0]())
        gc.disable()
        self.addCleanup(gc.enable)
        with self.assertRaises(Gateless):
            x.again_where_it_counts_for_nothing(row)
        self.assertEqual(left, [None] * 3)

    def test_a_candidate_cannot_choose_its_rows_by_that(self):
        x, blocks = self.blocks([2, 5, 7, 9], 3)
        self.assertEqual([one["clock"] for one in blocks], ["device", "device", "call"])

    def test_a_candidate_that_cannot_queue_has_no_other_clock(self):
        x, _ = self.blocks([], 1)
        x.use_clock(False)
        x.undisturbed_pair = lambda _first: x.pair(True)
        x.rows_of_pair = self.blocks(range(99), 0)[0].rows_of_pair
        self.assertIsNone(x.other_clock())

    def test_no_candidate_is_late_for_the_other_clock(self):
        for category, raises in (
            ("timed_out", False),
            ("out_of_memory", False),
            ("gpu_memory", False),
            ("wrong_result", True),
        ):
            x, _ = self.blocks([], 1)
            x.use_clock(False)

            def late(_first):
                raise Fault("candidate", category, "")

            x.undisturbed_pair = late
            if raises:
                self.assertRaises(Fault, x.other_clock)
            else:
                self.assertIsNone(x.other_clock())

    def test_no_candidate_runs_out_of_memory_for_it(self):
        for place in "draw", "learn_costs":
            x, _ = self.blocks([], 1)
            x.use_clock(False)
            setattr(x.bench, place, unittest.mock.Mock(side_effect=torch.cuda.OutOfMemoryError))
            self.assertIsNone(x.other_clock())

    def test_random_numbers_are_not_drawn_before_the_clock_starts(self):
        for is_random in True, False:
            bench = GatedBench(16)
            bench.is_random = is_random
            x = Judgement(bench, None, None, {"seconds": 60, "clock": "device"})
            self.assertEqual(x.is_gated, not is_random)
            x.row_length, x.undisturbed_pair, bench.can_queue_rows = 16, lambda _first: (2.0, 1.0), False
            self.assertEqual(x.other_clock() is None, is_random)

    def test_costs_are_learned_by_each_clock_before_there_is_a_candidate(self):
        for is_gated, clock in (True, "device"), (False, "call"):
            x = self.judgement(most=16)
            x.bench.row_length, x.bench.learned, x.is_gated, x.process = (
                16,
                {"call", "device"} - {clock},
                is_gated,
                None,
            )
            x.bench.layout, x.bench.row = types.SimpleNamespace(sets=16), lambda *_: None
            x.learn_quietly()
            learned = (
                [(16, True), (16, False)] if is_gated else [(16, False), (0, True)]
            )  # and what opening a gate takes
            self.assertEqual((x.bench.lengths, x.bench.learned), (learned, {"call", "device"}))
            x.learn_quietly()
            self.assertEqual(x.bench.lengths, learned)

    def quiet_judgement(self):
        x = self.judgement(most=16)
        x.bench.row_length, x.bench.learned, x.is_gated, x.process = 16, set(), False, None
        x.bench.layout, x.bench.row = types.SimpleNamespace(sets=16), lambda *_: None
        return x

    def test_rows_whose_length_was_found_on_a_busy_core_grow_while_there_is_no_candidate(self):
        for seconds, lengths in ((1e-3 / 16, [1, 16]), (1e-3 / 3, [1])):
            x = self.quiet_judgement()
            x.bench.row_length, x.bench.call_seconds, x.bench.learned = 1, seconds, {"device"}
            x.learn_quietly()
            self.assertEqual([length for length, is_gated in x.bench.lengths if not is_gated], lengths)
            self.assertEqual(x.bench.row_length, lengths[-1])
            self.assertEqual(x.bench.learned, {"call"} if len(lengths) > 1 else {"call", "device"})

    def test_of_rows_that_a_gate_made_shorter_nothing_is_known_by_the_other_clock(self):
        x = self.judgement(most=4)  # calls that the baseline can queue
        x.bench.row_length, x.bench.learned, x.is_gated, x.process = 16, {"call"}, True, None
        x.bench.layout, x.bench.row = types.SimpleNamespace(sets=16), lambda *_: None
        x.learn_quietly()
        self.assertEqual(
            x.bench.lengths[-2:], [(4, True), (4, False)]
        )  # by which clock it is paid, a candidate chooses
        self.assertEqual((x.bench.row_length, x.bench.learned), (4, {"device"}))

    def test_the_baseline_has_its_core_before_its_rows_say_anything(self):
        x, done = self.quiet_judgement(), []
        x.pool = types.SimpleNamespace(settle=lambda: done.append("settle"))
        x.core = types.SimpleNamespace(
            take_turns=lambda _pool, *timed: done.append(("core", len(timed))) or True, wake="waker"
        )
        x.bench.row = lambda *_: done.append("row")
        learn = x.bench.learn_costs
        x.bench.learn_costs = lambda *given: done.append("costs") or learn(*given)
        x.learn_quietly()
        self.assertEqual(done[:4], ["settle", "row", ("core", 1), "costs"])
        self.assertEqual(x.bench.wake_core, "waker")

    def test_a_baseline_that_never_has_its_core_is_looked_at_three_times(self):
        x = self.quiet_judgement()
        x.bench.row_length, x.bench.call_seconds = 1, 1e-3 / 16
        x.bench.fitting = lambda _one: 4 * x.row_length
        x.learn_quietly()
        self.assertEqual([length for length, is_gated in x.bench.lengths if not is_gated], [1, 4, 16])
        self.assertEqual(x.bench.row_length, 16)  # of which costs are known

    def test_rows_that_are_seen_to_be_short_beside_a_candidate_are_so_only_for_it(self):
        for length, is_known in (1, False), (16, True):
            x = self.quiet_judgement()
            x.bench.row_length, x.bench.learned, x.core = length, {"call"}, None
            x.bench.make_room, x.pool, x.warm_up = lambda: None, unittest.mock.Mock(), lambda *_: None
            x.prepare_timing()
            self.assertEqual(x.row_length, length)
            self.assertEqual((x.bench.row_length, x.bench.learned), (length, {"call"}) if is_known else (0, set()))

    def test_where_there_is_no_gate_before_a_candidate_comes_none_is_told_apart_by_one(self):
        def gateless(*_):
            raise Gateless

        def of_a_row(*given):
            if given[-1] is True:  # behind the gate
                raise Gateless

        for broken, how in ("learn_opening", gateless), ("row", of_a_row):
            x = self.quiet_judgement()
            setattr(x.bench, broken, how)
            x.learn_quietly()
            self.assertEqual((x.bench.can_queue, x.bench.can_queue_rows, x.bench.learned), (False, False, {"call"}))
            x.together = lambda *_: (1.0, 1.0)
            self.assertFalse(x.may_be_launches())
        x = self.quiet_judgement()
        x.learn_quietly()
        self.assertTrue(x.bench.can_queue and x.bench.can_queue_rows)

    def test_a_baseline_of_more_launches_than_a_queue_holds_has_no_rows_behind_the_gate(self):
        def of_a_whole_row(_process, count, *given):
            if given[-1] is True and count > 1:
                raise Gateless

        x = self.quiet_judgement()
        x.bench.row = of_a_whole_row
        x.learn_quietly()
        self.assertEqual((x.bench.can_queue, x.bench.can_queue_rows, x.not_queued), (True, False, 0))
        self.assertFalse(x.may_be_cold())

    def test_what_the_baseline_could_not_queue_takes_no_tries_from_the_candidate(self):
        x, fails = self.quiet_judgement(), [True, True, False]

        def once_more(*_):
            if fails.pop(0):
                raise Gateless
            return 0.0

        x.bench.learn_opening = once_more
        x.learn_quietly()
        self.assertEqual((x.bench.can_queue, x.not_queued), (True, 0))

    def test_a_baseline_that_fails_at_the_gate_is_not_the_candidates_fault(self):
        def late(*_):
            raise Fault("candidate", "timed_out", "the problem's own model was still busy")

        x = self.quiet_judgement()
        x.bench.learn_opening = late
        with self.assertRaises(Fault) as found:
            x.learn_quietly()
        self.assertEqual(found.exception.cls, "configuration")

    def test_what_a_candidate_left_on_the_gpu_makes_no_gate_open_later(self):
        bench = Bench.__new__(Bench)
        bench.device, bench.known_fixed, bench.usual_flush = "cuda", {}, 1e-3

        def opening(*microseconds, busy=0):
            rows = [
                Row(),
                *(Row(calls=x * 1e-6, flushing=5e-3 if i < busy else 1e-3) for i, x in enumerate(microseconds)),
            ]
            bench.row = lambda *_: rows.pop(0)
            return round(bench.learn_opening(None, 1.0, len(rows)) * 1e6)

        self.assertEqual(opening(900, 900, busy=2), 900)  # until more is known
        self.assertEqual(opening(900, 900, 900, 900, 100, 100, busy=4), 100)
        self.assertEqual(opening(900, 900, busy=2), 100)
        self.assertEqual((opening(120, 120), opening(300, 300)), (120, 150))

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

    def first_row(self, wrong, is_gated=False, moves=0):
        """The first row of one whose rows have so many wrong elements, by turns."""
        x, wrong, moves = self.judgement(most=16), list(wrong), [True] * moves
        x.is_gated, x.bench.draw, x.bench.outputs, x.bench.make_room, x.bench.row = (
            is_gated,
            lambda seeds: seeds,
            [],
            lambda: None,
            lambda *_: None,
        )
        asked = self.asked = []
        x.process = types.SimpleNamespace(
            ask=lambda message, _seconds: asked.append(message["on"]),
            stop=lambda: asked.append("stop"),
            reach=types.SimpleNamespace(
                moved=lambda: bool(moves and moves.pop()), begin_anew=lambda: asked.append("anew")
            ),
        )
        x.count_bad = lambda *_: wrong.pop(0)
        x.warm_up(list(range(16)), [[]] * 16)
        self.assertEqual(wrong, [])
        return x

    def test_outputs_of_a_candidate_that_is_right_call_by_call_alone_are_copied_and_it_is_told(self):
        x = self.first_row([1.0, 0.0])
        self.assertEqual(
            (x.row_length, [one["rule"] for one in x.findings], self.asked),
            (16, ["outputs_in_one_place"], [True, "stop", "anew"]),
        )
        self.assertEqual(self.first_row([0.0]).findings, [])
        self.assertEqual(self.first_row([1.0, 0.0], moves=1).findings, [])  # its memory had moved
        with self.assertRaises(Fault) as found:
            self.first_row([1.0, 1.0])
        self.assertEqual((found.exception.cls, found.exception.category), ("candidate", "wrong_result"))
        self.assertEqual(self.asked, [True, "stop", False, "stop"])

    def test_a_candidate_that_is_wrong_behind_the_gate_alone_is_timed_with_launches(self):
        x = self.first_row([1.0, 1.0, 0.0], is_gated=True)
        self.assertEqual(
            (x.clock, x.row_length, x.findings, self.asked), ("call", 16, [], [True, "stop", False, "stop"])
        )

    def test_the_clock_that_is_not_paid_is_the_lower_quarter_of_a_few_pairs_but_the_first(self):
        x, pairs = (
            self.judgement(most=16),
            iter([(0.5, 0.5), (2.0, 1.0), (4.0, 3.0), (6.0, 5.0), (3.0, 2.0), (9.0, 9.0)]),
        )
        x.is_gated = False
        x.undisturbed_pair = lambda _first: next(pairs)
        self.assertEqual(x.other_clock(), {"clock": "device", "reference": 3.0, "candidate": 2.0})

    def test_there_is_none_where_calls_cannot_be_queued(self):
        x = self.judgement(most=0)
        x.is_gated = False
        self.assertIsNone(x.other_clock())


if __name__ == "__main__":
    unittest.main()
