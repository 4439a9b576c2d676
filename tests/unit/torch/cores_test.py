"""The core on which timed processes take turns: which process is put there, and what happens where none can be."""

import os
import subprocess
import sys
import unittest
from unittest import mock

from kernelmill_torch import cores


class Sleeper:
    """Stands for a process of the warm one."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def number(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Pool:
    def __init__(self, test):
        self.test, self.taken = test, []

    def take(self, _who):
        self.taken.append(Sleeper())
        self.test.addCleanup(self.taken[-1].close)
        return self.taken[-1]


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core is too few")
class Cores(unittest.TestCase):
    def setUp(self):
        before = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, before)
        self.timed = [Sleeper(), Sleeper()]
        for x in self.timed:
            self.addCleanup(x.close)

    def core(self, wanted=-1):
        with mock.patch.object(cores, "FEWEST", 2):
            return cores.Core(wanted)

    def test_timed_processes_share_a_core_that_this_one_leaves(self):
        core, pool = self.core(), Pool(self)
        if core.number is None:
            self.skipTest("others have every core")
        self.assertTrue(core.take_turns(pool, *self.timed))
        for x in (*self.timed, *pool.taken):
            self.assertEqual(os.sched_getaffinity(x.number()), {core.number})
            self.assertTrue(core.has(x))
        self.assertNotIn(core.number, os.sched_getaffinity(0))
        self.assertTrue(core.take_turns(pool, *self.timed))
        self.assertEqual(len(pool.taken), 1)
        os.sched_setaffinity(self.timed[0].number(), core.allowed)
        self.assertFalse(core.has(self.timed[0]))

    def test_the_process_that_holds_the_clock_is_ahead_of_compilers_like_those_it_times(self):
        with mock.patch.object(cores, "put_ahead") as put:
            core = self.core()
            if core.number is None:
                self.skipTest("others have every core")
            core.take_turns(Pool(self), *self.timed)
        ahead = {call.args[0] for call in put.call_args_list}
        self.assertLessEqual({os.getpid(), *(x.number() for x in self.timed)}, ahead)

    def test_a_waker_that_has_ended_is_replaced(self):
        core, pool = self.core(), Pool(self)
        if core.number is None:
            self.skipTest("others have every core")
        core.take_turns(pool, *self.timed)
        pool.taken[0].process.kill()
        pool.taken[0].process.wait()
        self.assertTrue(core.take_turns(pool, *self.timed))
        self.assertEqual(len(pool.taken), 2)

    def test_when_one_cannot_be_put_there_none_is(self):
        core, pool = self.core(), Pool(self)
        if core.number is None:
            self.skipTest("others have every core")
        gone = Sleeper()
        gone.close()
        self.assertFalse(core.take_turns(pool, self.timed[0], gone))
        self.assertEqual(os.sched_getaffinity(self.timed[0].number()), core.allowed)

    def test_the_core_that_compilers_keep_off_is_taken(self):
        for wanted in sorted(os.sched_getaffinity(0)):
            core = self.core(wanted)
            self.assertEqual(core.number, wanted)
            core.mark.close()
            os.sched_setaffinity(0, core.allowed)
        first, second = self.core(wanted), self.core(wanted)
        self.assertNotEqual(first.number, second.number)

    def test_no_two_slots_choose_the_same(self):
        found = [x for x in (self.core(), self.core(), self.core()) if x.number is not None]
        self.assertEqual(len({x.number for x in found}), len(found))

    def test_too_few_cores_or_a_refusal_leave_everybody_where_he_is(self):
        with mock.patch.object(cores, "FEWEST", 10**6):
            few = cores.Core()
        with mock.patch.object(os, "sched_setaffinity", side_effect=PermissionError):
            refused = self.core()
        for core in (few, refused):
            self.assertIsNone(core.number)
            self.assertFalse(core.take_turns(Pool(self), *self.timed))
        self.assertEqual(os.sched_getaffinity(self.timed[0].number()), few.allowed)


if __name__ == "__main__":
    unittest.main()
