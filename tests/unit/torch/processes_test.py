"""What a process works while it is stopped is seen, and what is started meanwhile is stopped too."""

import os
import signal
import subprocess
import sys
import time
import unittest

try:
    from kernelmill_torch.processes import Process, processor_seconds
except ImportError:
    Process = None

BUSY = "while True: pass"


@unittest.skipIf(Process is None, "there is no torch here")
class Rest(unittest.TestCase):
    def setUp(self):
        self.children = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
        self.process = Process.__new__(Process)
        self.process.stopped, self.process._rested = True, None

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.wait()

    def seen(self, *children):
        self.process._numbers = lambda: [x.pid for x in children]

    def wait_until_it_works(self, child):
        before, end = processor_seconds(child.pid), time.monotonic() + 30
        while processor_seconds(child.pid) == before and time.monotonic() < end:
            time.sleep(0.001)

    def test_who_stands_still_has_worked_nothing(self):
        self.seen(*self.children)
        self.process.rest()
        self.assertEqual(self.process._worked([x.pid for x in self.children]), 0.0)

    def test_who_goes_on_is_seen(self):
        self.seen(*self.children)
        self.process.rest()
        os.kill(self.children[1].pid, signal.SIGCONT)
        self.wait_until_it_works(self.children[1])
        self.assertGreater(self.process._worked([x.pid for x in self.children]), 0.0)

    def test_who_was_not_there_counts_in_full(self):
        self.seen(self.children[0])
        self.process.rest()
        self.wait_until_it_works(self.children[1])
        total = processor_seconds(self.children[1].pid)
        self.assertGreaterEqual(self.process._worked([x.pid for x in self.children]), total)

    def test_who_was_not_stopped_is_left_alone(self):
        self.seen(*self.children)
        self.process.stopped = False
        self.process.rest()
        self.assertIsNone(self.process._rested)

    def test_who_is_gone_has_no_clock(self):
        self.children[0].kill()
        self.children[0].wait()
        self.assertEqual(processor_seconds(self.children[0].pid), 0.0)


if __name__ == "__main__":
    unittest.main()
