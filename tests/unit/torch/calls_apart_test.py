"""Calls that are kept apart, and calls alone: what a candidate gains that makes those of a row together."""

import types
import unittest

try:
    import torch
    from fakes import BusyBench, judgement
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.rows import Gateless
    from kernelmill_torch.watch import Free, Row
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "there is no torch here")
class CallsApart(unittest.TestCase):
    def judged(
        self,
        apart,
        reference_apart=51e-6,
        device="cuda",
        length=20,
        alone=(26e-6,) * 12,
        queued=None,
        opening=0.0,
        to_parity=False,
    ):
        bench = BusyBench([True] * 99)
        bench.device, bench.admitted, bench.free = device, types.SimpleNamespace(others=[]), Free(fixed=0.0)
        bench.baseline, bench.learn_opening = None, lambda *_: opening
        x = judgement(bench)
        x.row_length, x.asked, times, singles = length, [], list(apart), list(alone)

        def pair(_reference_first):
            for side in (0, 1):
                x.watch.rows[side].append(Row(flushing=0.5))
            for past, seconds in zip(x.rows.setdefault(x.kind, ([], [])), (50e-6, 25e-6)):
                past.append(seconds)
            return 50e-6, 25e-6

        def candidate_row(seeds, is_apart=False, laws=()):
            if x.is_gated and queued is None:
                raise Gateless
            x.watch.rows[1].append(Row(flushing=0.5))
            if x.is_gated:
                return Row(calls=queued), lambda: None
            if len(seeds) == 1 < length:
                return Row(calls=singles.pop(0)), lambda: None
            assert is_apart
            return Row(calls=times.pop(0) * length), lambda: x.asked.append("audit")

        x.undisturbed_pair, x.candidate_row, x.quietly = pair, candidate_row, lambda work: work()
        x.baseline_row = lambda seeds, is_apart=False, laws=(): Row(
            calls=reference_apart * length if len(seeds) == length else 55e-6
        )
        x.plan = iter(["own"] * 9)
        if not to_parity:  # what is saved is asked here, also where it is more than a speedup
            x.to_parity = lambda charge: charge
        return x

    def test_what_ran_beside_others_is_charged(self):
        x = self.judged([51e-6, 51e-6, 90e-6] + [51e-6] * 9)
        self.assertEqual(x.block()["beside"], 0.0)  # of two rows nothing is known
        found = x.block()
        self.assertAlmostEqual(found["beside"], 25e-6)
        self.assertAlmostEqual(found["apart"], 51e-6)
        self.assertAlmostEqual(found["cost"], 1e-6)
        self.assertEqual(x.asked, ["audit"] * 12)  # four rows charge no candidate
        x.block()
        self.assertEqual(len(x.asked), 12)

    def test_what_first_launches_take_is_no_calls(self):
        """20 calls of the baseline take 1 ms in a row and 0.9 ms of the GPU's work,
        those of the candidate 0.5 and 0.44."""
        for can_queue, baseline, candidate in (True, 5e-6, 3e-6), (False, 0.0, 0.0):
            x = self.judged([26e-6] * 4, queued=0.54e-3, opening=0.1e-3)
            row_of = x.baseline_row
            x.baseline_row = lambda seeds, is_apart=False, laws=(): (
                Row(calls=1e-3) if x.is_gated else row_of(seeds, is_apart)
            )
            x.bench.can_queue_rows = can_queue
            self.assertEqual(x.block()["cold"], [0.0, 0.0])  # of two rows nothing is known
            found = x.block()["cold"]
            self.assertAlmostEqual(found[0], baseline)
            self.assertAlmostEqual(found[1], candidate)
            self.assertEqual((len(x.queued[1]), len(x.watch.rows[1]), x.is_gated), (4 * can_queue, 8, False))

    def test_whose_calls_cannot_wait_there_takes_nothing_from_the_baseline(self):
        for more in {}, {"flushing": 9.0}:  # nor one that leaves work there
            x = self.judged([26e-6] * 8, queued=0.54e-3 if more else None, opening=0.1e-3)
            row_of, known = x.candidate_row, x.baseline_row
            x.baseline_row = lambda seeds, is_apart=False, laws=(): (
                Row(calls=1e-3) if x.is_gated else known(seeds, is_apart)
            )
            x.candidate_row = lambda seeds, is_apart=False, laws=(): (lambda row, check: (row._replace(**more), check))(
                *row_of(seeds, is_apart)
            )
            for _ in range(3):
                found = x.block()["cold"]
            self.assertAlmostEqual(found[0], 5e-6)
            self.assertEqual((found[1], x.queued[1]), (0.0, []))

    def test_what_the_candidate_does_besides_rows_behind_the_gate_is_work(self):
        for more, kept in ({"revealing": 40e-6}, 4), ({"flushing": 9.0}, 0):
            x = self.judged([26e-6] * 4, queued=0.54e-3, opening=0.1e-3)
            row_of = x.candidate_row

            def early(seeds, is_apart=False, laws=()):
                row, check = row_of(seeds, is_apart, laws)
                return row._replace(**more) if x.is_gated else row, check

            x.candidate_row = early
            x.block()
            self.assertAlmostEqual(x.block()["cold"][1], 1e-6 if kept else 0.0)
            self.assertEqual(len(x.queued[1]), kept)

    def test_what_python_takes_to_keep_calls_apart_is_no_work(self):
        """A fence takes 10 us of a kernel of 25 us, and next to nothing beside the baseline, which the GPU limits."""
        for gpu, charged in (26, 0.0), (36, 10e-6):  # us of a call apart behind the gate
            x = self.judged([36e-6] * 12, queued=gpu * 20e-6)
            x.block()
            self.assertAlmostEqual(x.block()["beside"], charged)
            self.assertEqual((len(x.apart_queued), x.is_gated), (3, False))

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
        self.assertAlmostEqual(found["beside"], 195e-6)  # a call that waits for the GPU hides no launch
        self.assertEqual(len(x.alone[1]), 12)
        self.assertEqual(len(x.watch.rows[1]), 8)  # two blocks' and four that are kept apart

    def test_a_gate_that_is_lost_beside_the_candidate_makes_nothing_free(self):
        def gateless(*_):
            raise Gateless

        for can_queue, charged in (True, 22e-6), (False, 0.0):  # 25 may be launches, where the baseline never could
            x = self.judged([26e-6] * 4, alone=[52e-6] * 12, queued=26e-6)
            x.bench.learn_opening, x.bench.can_queue = gateless, can_queue
            x.block()
            self.assertAlmostEqual(x.block()["beside"], charged)

    def test_so_they_are_on_a_cpu(self):
        x = self.judged([], device="cpu", alone=[70e-6] * 12)
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 20e-6)

    def test_a_candidate_that_waits_for_a_core_of_a_busy_machine_pays_nothing(self):
        x = self.judged([], device="cpu", alone=[4e-3] * 8 + [30e-6] + [4e-3] * 3)
        x.block()
        self.assertEqual(x.block()["beside"], 0.0)
        x = self.judged([], device="cpu", alone=[4e-3] * 12)
        x.baseline_row = lambda seeds, is_apart=False, laws=(): Row(calls=4.02e-3)
        x.block()
        self.assertEqual(x.block()["beside"], 0.0)

    def test_a_baseline_that_waits_for_a_core_is_no_excuse(self):
        x, times = self.judged([], device="cpu", alone=[70e-6] * 12), [4e-3] * 6 + [55e-6] * 6
        x.baseline_row = lambda seeds, is_apart=False, laws=(): Row(calls=times.pop(0))
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 20e-6)
        self.assertEqual(times, [])

    def test_a_launch_and_cold_caches_are_free(self):
        for alone in 50e-6, 55e-6:
            x = self.judged([26e-6] * 4, alone=[alone] * 12, queued=27e-6)
            x.block()
            self.assertEqual((x.block()["beside"], len(x.alone[1])), (0.0, 4))

    def launching(self, reference, reference_alone, reference_queued, candidate, alone, queued, to_parity=False):
        """A judgement whose rows take so many microseconds a call: in a row, alone, and alone behind the gate."""
        x = self.judged([26e-6] * 4, alone=[alone * 1e-6] * 12, queued=queued * 1e-6, to_parity=to_parity)

        def pair(_reference_first):
            for side in (0, 1):
                x.watch.rows[side].append(Row(flushing=0.5))
            for past, seconds in zip(x.rows.setdefault("own", ([], [])), (reference, candidate)):
                past.append(seconds * 1e-6)
            return reference * 1e-6, candidate * 1e-6

        x.undisturbed_pair, x.kept_apart = pair, lambda in_doubt=False: (0.0, 0.0, 0.0)

        def baseline_row(seeds, is_apart=False, laws=()):
            opening = x.bench.learn_opening()
            return Row(
                calls=opening + (reference_queued * 1e-6 - opening) * len(seeds)
                if x.is_gated
                else reference_alone * 1e-6
            )

        x.baseline_row = baseline_row
        return x

    def charged(self, *microseconds):
        x = self.launching(*microseconds)
        x.block()
        return round(x.block()["beside"] * 1e6), len(x.alone_queued[1])

    def test_launches_are_what_is_not_there_behind_the_gate(self):
        self.assertEqual(
            self.charged(50, 65, 65, 25, 90, 26), (0, 3)
        )  # the baseline's work is the GPU's: launches limit neither
        self.assertEqual(self.charged(50, 55, 55, 25, 48, 48), (18, 12))
        self.assertEqual(self.charged(50, 55, 55, 25, 90, 80), (63, 12))
        self.assertEqual(self.charged(50, 55, 55, 25, 90, 200), (195, 12))

    def test_a_candidate_that_launches_once_for_several_calls_pays_for_each(self):
        for calls, charged in (2, 15), (3, 35), (30, 44):  # of 30 us, of which 3 are the GPU's
            self.assertEqual(self.charged(30, 41, 11, 30 // calls, 41, 11), (charged, 12))
        self.assertEqual(self.charged(30, 41, 11, 15, 41, 30), (15, 12))  # work behind the gate that is not there else
        self.assertEqual(self.charged(200, 220, 28, 100, 220, 28)[0], 92)

    def test_launches_behind_the_work_of_the_baseline_are_colder_alone_and_no_third_of_that_in_a_row(self):
        self.assertEqual(self.charged(16, 20, 16, 30, 65, 31)[0], 0)  # Triton beside one kernel of torch's own
        self.assertEqual(self.charged(200, 204, 204, 1, 30, 3)[0], 32)  # one launch for all calls of a row

    def test_no_candidate_is_charged_beyond_the_baselines_call(self):
        """A copy beside 16 busy processes, on an H100: its launches alone were late,
        five times as long as the baseline's; 0.207 was paid."""
        x = self.launching(18, 22, 17.5, 21, 109, 35, to_parity=True)
        x.block()
        found = x.block()
        self.assertEqual(found["beside"], 0.0)
        x = self.launching(30, 41, 11, 8, 41, 11, to_parity=True)  # a launch for four calls
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 1.05 * 30e-6 - 8e-6)

    def test_a_candidate_that_draws_random_numbers_launches_for_each_call_too(self):
        for is_random in False, True:
            x = self.launching(30, 33, 3, 15, 33, 3)
            x.bench.is_random = is_random
            x.block()
            self.assertAlmostEqual(x.block()["beside"], 15e-6)

    def test_the_gpus_turn_to_a_process_is_no_call(self):
        """Rows of one behind the gate, as an H100 takes them: 16 us of a call and 115 to turn to the process."""
        x = self.launching(16, 60, 131, 16, 75, 131)
        x.bench.learn_opening = lambda *_: 115e-6
        x.block()
        self.assertEqual((x.block()["beside"], len(x.alone_queued[1])), (0.0, 3))
        x = self.launching(
            30, 34, 118, 16, 34, 118
        )  # a launch for two calls, of which 3 us are the GPU's: no tenth of a row's 118
        x.bench.learn_opening = lambda *_: 115e-6
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 14e-6)
        x = self.launching(61, 75, 180, 30, 100, 200)  # two calls as one, on what one leaves idle
        x.bench.learn_opening = lambda *_: 115e-6
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 63.5e-6)

    def test_what_rows_of_the_baseline_differ_by_is_chance(self):
        x = self.judged([26e-6] * 4, alone=[52e-6] * 12, queued=52e-6)
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 22e-6)
        x, times = self.judged([26e-6] * 4, alone=[52e-6] * 12, queued=52e-6), [0, 60e-6, 120e-6] * 8
        row_of = x.baseline_row
        x.baseline_row = lambda seeds, is_apart=False, laws=(): (
            row_of(seeds, is_apart, laws)._replace(calls=times.pop(0))
            if len(seeds) == 1
            else row_of(seeds, is_apart, laws)
        )
        x.block()
        self.assertEqual(x.block()["beside"], 0.0)

    def test_the_baseline_takes_no_less_alone_than_in_a_row(self):
        """Of rows of one call 73 us are none of its calls'. Rows of two lengths, made at two clocks, say 80."""
        x = self.launching(34, 103, 118, 9, 103, 118)
        x.bench.learn_opening, x.bench.free = lambda *_: 115e-6, Free(fixed=80e-6)
        x.block()
        found = x.block()
        self.assertAlmostEqual(found["seen"]["alone_reference"], 30e-6)
        self.assertAlmostEqual(found["beside"], 28e-6)  # 33 for a call of 30

    def test_the_record_has_what_charges_rest_on(self):
        x = self.launching(30, 41, 126, 15, 41, 126)
        x.bench.learn_opening, x.bench.free = lambda *_: 115e-6, Free(fixed=0.0)
        x.block()
        self.assertEqual(
            {name: round(seconds * 1e6) for name, seconds in x.block()["seen"].items()},
            {
                "opening": 115,
                "alone_reference": 41,
                "alone_candidate": 41,
                "queued_reference": 11,
                "queued_candidate": 11,
            },
        )

    def test_more_rows_leave_less_to_chance(self):
        """Two calls are made at once. The first rows of the baseline happen to be uneven."""
        x = self.judged([26e-6] * 4, alone=[46e-6] * 12, queued=46e-6)
        row_of, times = x.baseline_row, [45e-6, 55e-6, 65e-6, 55e-6]
        x.baseline_row = lambda seeds, is_apart=False, laws=(): (
            row_of(seeds, is_apart, laws)._replace(calls=times.pop(0))
            if times and len(seeds) == 1
            else row_of(seeds, is_apart, laws)
        )
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 16e-6)

    def test_what_was_left_on_the_gpu_makes_nothing_free(self):
        """A candidate that leaves work behind after a row of one call makes that of the baseline longer."""

        def rows(waits):
            x, left = self.judged([26e-6] * 4, alone=[46e-6] * 12, queued=46e-6), 0
            row_of, candidate_row = x.baseline_row, x.candidate_row

            def baseline_row(seeds, is_apart=False, laws=()):
                nonlocal left
                row, left = row_of(seeds, is_apart, laws), left - 1
                return row._replace(calls=row.calls + 1e-3, flushing=2.0) if left >= 0 else row

            def leaves(seeds, is_apart=False, laws=()):
                nonlocal left
                left = waits if len(seeds) == 1 else 0
                return candidate_row(seeds, is_apart, laws)

            def quietly(work):
                if x.are_long(work()):
                    x.background_work("")

            x.baseline_row, x.candidate_row, x.quietly = baseline_row, leaves, quietly
            return x

        x = rows(waits=3)
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 16e-6)
        x = rows(waits=99)  # for as long as rows are to be made: then it is asked whether that ends with the candidate
        self.assertRaises(Fault, x.block)
        self.assertEqual(len(x.alone[0]), 1)

    def test_no_candidate_is_charged_for_launches_by_four_rows(self):
        x = self.launching(30, 41, 11, 30, 56, 11)
        alone = [56e-6] * 4 + [41e-6] * 8
        row_of = x.candidate_row
        x.candidate_row = lambda seeds, is_apart=False, laws=(): (
            (Row(calls=alone.pop(0)), lambda: None)
            if len(seeds) == 1 and not x.is_gated
            else row_of(seeds, is_apart, laws)
        )
        x.block()
        self.assertEqual(x.block()["beside"], 0.0)
        self.assertLess(len(alone), 8)

    def test_launches_that_a_row_hides_are_free(self):
        self.assertEqual(self.charged(30, 68, 38, 30, 68, 38)[0], 0)  # a copy whose work takes as long
        self.assertEqual(self.charged(30, 41, 11, 30, 46, 11)[0], 0)  # a copy that is colder
        self.assertEqual(self.charged(60, 83, 23, 25, 38, 13)[0], 0)  # fewer launches
        self.assertEqual(self.charged(200, 228, 208, 30, 75, 33)[0], 0)  # a baseline that launches do not limit

    def test_random_numbers_that_were_drawn_before_the_clock_save_nothing(self):
        x = self.judged([26e-6] * 4, alone=[70e-6] * 12, queued=26e-6)
        x.bench.is_random = True
        x.block()
        self.assertAlmostEqual(x.block()["beside"], 20e-6)  # 25 may be launches

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


if __name__ == "__main__":
    unittest.main()
