"""What rows show of work while no process should have worked."""

import unittest

try:
    from kernelmill_torch.watch import CANDIDATE, REFERENCE, Free, Row, Watch
except ImportError:
    Watch = Free = None


def watched(part, reference, candidate):
    """A watch of rows of which one part took some seconds."""
    result = Watch()
    for kind, seconds in ((REFERENCE, reference), (CANDIDATE, candidate)):
        result.rows[kind].extend(Row(**{part: x}) for x in seconds)
    return result


@unittest.skipIf(Watch is None, "there is no torch here")
class Findings(unittest.TestCase):
    def rules(self, part, reference, candidate):
        return [rule for rule, _ in watched(part, reference, candidate).findings()]

    def test_work_while_stopped_is_found_where_it_is_usual(self):
        self.assertEqual(self.rules("awake", [], [1e-3] * 4), ["ran_while_stopped"])

    def test_a_candidate_that_works_ahead_in_a_part_of_the_rows_is_found(self):
        for rows in ([1e-3, 0.0] * 8, [0.0, 1e-3, 0.0] * 5, [1e-3] * 4 + [0.0] * 12):
            self.assertEqual(self.rules("awake", [], rows), ["ran_while_stopped"], rows)
        self.assertEqual(self.rules("awake", [], [1e-3] * 3 + [0.0] * 13), [])
        self.assertEqual(self.rules("awake", [], [4e-5] * 16), [])

    def test_what_a_busy_machine_does_once_is_not(self):
        self.assertEqual(self.rules("awake", [], [1e-3, 0.0, 0.0, 2e-5]), [])
        self.assertEqual(self.rules("awake", [], [1e-3] * 3), [])

    def test_a_gpu_that_is_at_work_after_the_candidates_rows_alone_is_found(self):
        self.assertEqual(self.rules("looking", [2e-4] * 4, [4e-4] * 4), ["unfinished_work"])

    def test_one_that_is_after_both_is_not(self):
        self.assertEqual(self.rules("looking", [9e-4] * 4, [9e-4] * 4), [])
        self.assertEqual(self.rules("looking", [2e-4] * 4, [2e-4, 2e-4, 2e-4, 9e-3]), [])


@unittest.skipIf(Watch is None, "there is no torch here")
class Charged(unittest.TestCase):
    FREE = Free and Free(besides=4.0, limit=6.0)

    def test_the_record_says_which_part_is_longer(self):
        x = watched("turning", [1.0] * 4, [1.5] * 4).charged_besides(self.FREE)
        self.assertEqual((x["besides"], x["besides_turning"], x["besides_taking"]), (0.5, 0.5, 0.0))

    def test_of_a_candidate_that_pays_nothing_it_names_no_part(self):
        self.assertEqual(watched("turning", [1.0] * 4, [1.0] * 4).charged_besides(self.FREE), {"besides": 0.0})


@unittest.skipIf(Watch is None, "there is no torch here")
class SecondsOfARow(unittest.TestCase):
    """What comes before and after the calls takes the baseline 2 s, in a few rows 3 s; 4 s were free at first."""

    FREE = Free and Free(besides=4.0, limit=6.0)

    def setUp(self):
        self.usual = [2.0] * 18 + [3.0] * 2

    def candidate(self, taking, earlier=(), reference=None, free=FREE):
        x = watched("taking", self.usual if reference is None else reference, [*earlier, taking])
        return x.candidate_seconds(Row(calls=4.5, taking=taking), free)

    def test_the_least_is_what_the_calls_took(self):
        self.assertEqual(self.candidate(0.0), 4.5)
        self.assertEqual(self.candidate(2.5, self.usual), 4.5)

    def test_a_row_pays_for_what_nearly_none_of_the_baselines_took(self):
        self.assertEqual(self.candidate(4.0, self.usual), 5.5)
        self.assertEqual(self.candidate(4.5, reference=[2.0]), 5.0)  # too few to know; then what was learned is free

    def test_all_parts_count(self):
        x = watched("taking", self.usual, [])
        self.assertEqual(x.candidate_seconds(Row(0.5, 1.0, 0.5, 4.5, 1.0, 1.0), self.FREE), 5.5)

    def test_a_candidate_that_takes_longer_in_the_median_pays_for_it_in_each_row(self):
        self.assertEqual(self.candidate(2.0, [2.75] * 8), 5.25)
        self.assertEqual(self.candidate(2.0, [2.75] * 2), 4.5)  # too few to say
        self.assertEqual(self.candidate(2.0, [2.75] * 8, reference=[1.0, 2.0, 3.0] * 3), 4.5)  # it may be chance

    def test_there_is_a_limit_to_what_long_rows_of_the_baseline_allow(self):
        self.assertEqual(self.candidate(9.0, reference=[8.0] * 9), 7.5)
        self.assertEqual(self.candidate(6.0, [8.0] * 8, reference=[8.0] * 9), 6.5)

    def test_the_baseline_pays_where_no_candidate_can_make_it(self):
        x = watched("taking", self.usual, [])
        row = Row(calls=4.5, taking=4.0)
        self.assertEqual(x.reference_seconds(row, self.FREE, on_gpu=True), 4.5)
        self.assertEqual(x.reference_seconds(row, self.FREE, on_gpu=False), 5.5)
        self.assertEqual(x.reference_seconds(Row(calls=4.5, taking=1.0), self.FREE, on_gpu=False), 4.5)


@unittest.skipIf(Watch is None, "there is no torch here")
class LongBeforeCandidate(unittest.TestCase):
    """A flush takes at most 1 s."""

    def look(self, reference, candidate):
        return watched("flushing", reference, candidate).long_before_candidate(1.0)

    def test_its_own_flushes_alone(self):
        self.assertEqual(self.look([0.5] * 9, [2.0] * 8), 2.0)
        self.assertEqual(self.look([0.5] * 7 + [2.0], [2.0] * 7 + [0.5]), 2.0)

    def test_no_other(self):
        self.assertIsNone(self.look([0.5] * 8, [0.5] * 7 + [2.0]))
        self.assertIsNone(self.look([2.0] * 8, [2.0] * 8))  # another program
        self.assertIsNone(self.look([0.5] * 8, [2.0] * 6 + [0.5] * 2))
        self.assertIsNone(self.look([0.5] * 6, [2.0] * 6))  # too few to say so

    def test_flushes_after_a_mark(self):
        x = watched("flushing", [0.25], [0.5])
        mark = x.mark()
        self.assertEqual(mark, (1, 1))
        x.rows[CANDIDATE].append(Row(flushing=0.75))
        self.assertEqual(x.flushes(mark), [[], [0.75]])


if __name__ == "__main__":
    unittest.main()
