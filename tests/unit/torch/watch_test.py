"""What rows show of who was at work when nobody should have been."""

import unittest

try:
    from kernelmill_torch.processes import Row
    from kernelmill_torch.watch import CANDIDATE, REFERENCE, Watch
except ImportError:
    Watch = None


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

    def test_what_a_busy_machine_does_once_is_not(self):
        self.assertEqual(self.rules("awake", [], [1e-3, 0.0, 0.0, 2e-5]), [])
        self.assertEqual(self.rules("awake", [], [1e-3] * 3), [])

    def test_a_gpu_that_is_at_work_after_the_candidates_rows_alone_is_found(self):
        self.assertEqual(self.rules("looking", [2e-4] * 4, [4e-4] * 4), ["unfinished_work"])

    def test_one_that_is_after_both_is_not(self):
        self.assertEqual(self.rules("looking", [9e-4] * 4, [9e-4] * 4), [])
        self.assertEqual(self.rules("looking", [2e-4] * 4, [2e-4, 2e-4, 2e-4, 9e-3]), [])


@unittest.skipIf(Watch is None, "there is no torch here")
class LongBeforeCandidate(unittest.TestCase):
    """A flush takes at most 1 s."""

    def look(self, reference, candidate):
        return watched("flushing", reference, candidate).long_before_candidate(1.0)

    def test_its_own_flushes_alone(self):
        self.assertEqual(self.look([0.5] * 9, [2.0] * 8), 2.0)
        self.assertEqual(self.look([0.5] * 7 + [2.0], [2.0] * 7 + [0.5]), 2.0)

    def test_nobody(self):
        self.assertIsNone(self.look([0.5] * 8, [0.5] * 7 + [2.0]))
        self.assertIsNone(self.look([2.0] * 8, [2.0] * 8))  # somebody else
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
