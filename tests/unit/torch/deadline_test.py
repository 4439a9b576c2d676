"""When the time of an evaluation is over: whose doing it is, and what becomes of who was right until then."""

import time
import types
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from fakes import FakeBench, judgement
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.referee import Referee


def late(waited, before=0.0):
    """A judgement whose time is over, of which so many of 60 s were spent waiting for the candidate."""
    x = judgement(FakeBench())
    x.deadline = time.monotonic() - 1
    x.process.waited, x.waited, x.loaded = waited, before, True
    return x


@unittest.skipIf(torch is None, "there is no torch here")
class Deadline(unittest.TestCase):
    def fault(self, x):
        with self.assertRaises(Fault) as raised:
            x.left()
        return raised.exception.cls, raised.exception.category

    def test_a_candidate_that_was_waited_for_used_the_time_up(self):
        self.assertEqual(self.fault(late(31.0)), ("candidate", "timed_out"))
        self.assertEqual(self.fault(late(1.0, before=30.0)), ("candidate", "timed_out"))  # in a process that is no more

    def test_what_took_the_machine_so_long_is_no_candidates(self):
        self.assertEqual(self.fault(late(5.0)), ("infrastructure", "time_spent"))

    def timed(self, x, fault):
        referee = Referee.__new__(Referee)
        referee.judgement, referee.crowded, referee.ending = x, False, []
        referee.control_works = lambda _x: True
        x.bench.layout, x.bench.notes, x.bench.floor_bytes = types.SimpleNamespace(inputs=[], outputs=[]), [], 0.0
        x.bench.weight_bytes = x.bench.read_rate = 0.0

        def work():
            raise fault

        return referee.outcome_of_batches(work)

    def test_a_batch_that_does_not_fit_in_refuses_no_candidate(self):
        for fault in (Fault("candidate", "timed_out", ""), Fault("infrastructure", "time_spent", "")):
            found = self.timed(late(31.0), fault)
            self.assertEqual((found["fault"], found["spent"]), (None, True))

    def test_a_candidate_that_hangs_before_that_is_refused(self):
        x = late(5.0)
        x.deadline = time.monotonic() + 60
        found = self.timed(x, Fault("candidate", "timed_out", "was still busy"))
        self.assertEqual((found["fault"]["category"], found["spent"]), ("timed_out", False))


if __name__ == "__main__":
    unittest.main()
