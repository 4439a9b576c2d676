"""What a process works while it is stopped is seen, and what is started meanwhile is stopped too."""

import os
import signal
import subprocess
import sys
import time
import unittest

try:
    from kernelmill_torch.processes import Fault, Process, processor_seconds
except ImportError:
    Process = None

BUSY = "while True: pass"


@unittest.skipIf(Process is None, "there is no torch here")
class Stop(unittest.TestCase):
    def setUp(self):
        self.children = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
        self.process = Process.__new__(Process)
        self.process.who, self.process._rested = "the candidate", None
        self.process._first = self.children[0].pid

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.wait()

    def stop(self, *children):
        self.process._numbers = lambda: [x.pid for x in children]
        self.process.stop()

    def wait_until_it_works(self, child):
        before, end = processor_seconds(child.pid), time.monotonic() + 30
        while processor_seconds(child.pid) == before and time.monotonic() < end:
            time.sleep(0.001)

    def worked(self):
        return self.process._worked([x.pid for x in self.children])

    def test_who_stands_still_works_nothing(self):
        self.stop(*self.children)
        self.assertTrue(self.process.stopped)
        self.assertEqual(self.worked(), 0.0)

    def test_who_goes_on_is_seen(self):
        self.stop(*self.children)
        os.kill(self.children[1].pid, signal.SIGCONT)
        self.wait_until_it_works(self.children[1])
        self.assertGreater(self.worked(), 0.0)

    def test_who_was_not_there_counts_in_full(self):
        self.stop(self.children[0])
        self.wait_until_it_works(self.children[1])
        total = processor_seconds(self.children[1].pid)
        self.assertGreaterEqual(self.worked(), total)

    def test_who_is_started_meanwhile_is_stopped_too(self):
        seen = iter([self.children[:1], self.children, self.children])
        self.process._numbers = lambda: [x.pid for x in next(seen)]
        self.process.stop()
        self.assertEqual(self.worked(), 0.0)

    def test_who_starts_processes_without_end_is_at_fault(self):
        numbers = iter(range(1 << 24, 1 << 25))  # nobody has those
        self.process._numbers = lambda: [next(numbers)]
        killed = []
        self.process.kill = lambda: killed.append(True)
        with self.assertRaises(Fault) as caught:
            self.process.stop()
        self.assertEqual((caught.exception.cls, caught.exception.category), ("candidate", "integrity"))
        self.assertEqual(killed, [True])

    def test_who_is_gone_has_no_clock(self):
        self.children[0].kill()
        self.children[0].wait()
        self.assertEqual(processor_seconds(self.children[0].pid), 0.0)


if __name__ == "__main__":
    unittest.main()
