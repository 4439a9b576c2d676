"""The referee's end of a process: whose fault its end is, how long it is waited for."""

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock
import weakref

try:
    import torch
    from kernelmill_torch import native, processes
    from kernelmill_torch.candidate import Serving
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.processes import Process
    from kernelmill_torch.stillness import processor_seconds, seconds_without_core
except ImportError:
    Process = None

BUSY = "while True: pass"


@unittest.skipIf(Process is None, "there is no torch here")
class Ended(unittest.TestCase):
    """Whose fault an end is."""

    def category_of(self, status, kills_before, kills_now):
        self.addCleanup(setattr, processes, "kills_for_memory", processes.kills_for_memory)
        processes.kills_for_memory = lambda: kills_now
        process = Process.__new__(Process)
        process.zygote = types.SimpleNamespace(status_of=lambda _pid: status)
        process.pid, process.who, process.printed, process._kills = 1, "the candidate", -1, kills_before
        fault = process.ended()
        return fault.cls, fault.category

    def test_a_process_that_was_killed_from_outside_is_not_at_fault(self):
        self.assertEqual(self.category_of(-signal.SIGKILL, 5, 5), ("infrastructure", "killed_outside"))

    def test_a_process_that_was_killed_where_memory_was_short_is(self):
        self.assertEqual(self.category_of(-signal.SIGKILL, 5, 6), ("candidate", "out_of_memory"))

    def test_where_kills_are_not_counted_it_is(self):
        self.assertEqual(self.category_of(-signal.SIGKILL, None, None), ("candidate", "out_of_memory"))

    def test_no_exit_code_looks_like_that(self):
        self.assertEqual(self.category_of(128 + signal.SIGKILL, 5, 5), ("candidate", "crashed"))

    def test_kills_are_counted_here(self):
        with open("/proc/vmstat") as file:
            counted = "oom_kill " in file.read()
        self.assertEqual(processes.kills_for_memory() is not None, counted)


@unittest.skipIf(Process is None, "there is no torch here")
class Stop(unittest.TestCase):
    def setUp(self):
        self.children = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
        self.process = Process.__new__(Process)
        self.process.who, self.process._still, self.process.until = "the candidate", None, math.inf
        self.process._first = self.children[0].pid
        self.process._firstfd, self.process._ending = -1, []

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.wait()

    def wait_until_it_works(self, child, seconds=0.0):
        before, end = processor_seconds(child.pid), time.monotonic() + 30
        while processor_seconds(child.pid) <= before + seconds and time.monotonic() < end:
            time.sleep(0.001)

    def test_a_process_that_starts_processes_without_end_is_at_fault(self):
        self.process.lib = types.SimpleNamespace(
            km_still_of=lambda _pid: 1, km_still_stop=lambda _still: native.SPAWNING
        )
        killed = []
        self.process.kill = lambda: killed.append(True)
        with self.assertRaises(Fault) as caught:
            self.process.stop()
        self.assertEqual((caught.exception.cls, caught.exception.category), ("candidate", "integrity"))
        self.assertEqual(killed, [True])

    def test_a_process_that_had_no_core_has_that_time_once_more_but_not_for_ever(self):
        without = 0.5
        self.addCleanup(setattr, processes, "seconds_without_core", processes.seconds_without_core)
        processes.seconds_without_core = lambda number: without
        self.process._given = 0.0
        self.assertEqual(self.process._more_time(1.0), 0.5)
        self.assertEqual(self.process._more_time(1.0), 0.0)
        without = 1000.0
        self.assertEqual(self.process._more_time(1.0), processes.MOST_PATIENCE - 0.5)
        self.assertEqual(self.process._more_time(1.0), 0.0)

    def test_whose_time_is_over_has_no_more_whatever_it_waited_for(self):
        self.addCleanup(setattr, processes, "seconds_without_core", processes.seconds_without_core)
        processes.seconds_without_core = lambda number: 1e6
        self.process._given = 0.0
        self.process.until = time.monotonic() + 1000.0
        self.assertLessEqual(self.process._within(6e4), 1000.0)
        self.assertEqual(self.process._within(0.5), 0.5)
        self.assertLessEqual(self.process._more_time(6e4), 1000.0)
        self.process.until = time.monotonic()
        self.assertEqual((self.process._within(60.0), self.process._more_time(60.0)), (0.0, 0.0))

    def test_no_wait_for_it_goes_on_when_its_time_is_over(self):
        asked = []

        def call(_page, _pidfd, _command, _first, _count, _place, _seed, seconds, _spin):
            asked.append(seconds)
            return native.TIMED_OUT

        self.process.lib = types.SimpleNamespace(km_page_call=call, km_page_status=lambda _page: 0)
        self.process.page, self.process.pidfd, self.process.place, self.process.clocked = None, -1, 0, True
        self.process._given, self.process.until = 0.0, time.monotonic()
        self.process.kill = lambda: asked.append("killed")
        with self.assertRaises(Fault) as caught:
            self.process.call(native.CALL, 0, 1, 60.0)
        self.assertEqual((caught.exception.category, asked), ("timed_out", [0.0, "killed"]))

    def test_what_is_waited_for_counts_whatever_comes_of_it(self):
        x = self.process
        x.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.close()
        self.addCleanup(x.sock.close)
        x.page, x.pidfd, x.place, x.clocked, x.batches, x.until = None, -1, 0, True, 0, math.inf
        x._given, x.ended = 0.0, lambda: Fault("candidate", "crashed", "")
        now = [0.0]

        def call(*_):
            now[0] += 1.0
            return 1.0

        x.lib = types.SimpleNamespace(
            km_page_call=call, km_page_status=lambda _page: 1, km_page_await=call, km_batch_force=lambda *_: None
        )
        with unittest.mock.patch.object(processes.time, "monotonic", lambda: now[0]):
            self.assertRaises(Fault, x.call, native.CALL, 0, 1, 60.0)
            self.assertEqual(x.waited, 1.0)

    def spread(self, threads):
        """Which cores each of so many threads of this process may have, that have worked since the last time."""
        cores, done, ready = [0, 1, 2], threading.Event(), threading.Barrier(threads + 1)

        def work():
            for _ in range(2):
                ready.wait()
            done.wait()

        mine = [threading.Thread(target=work) for _ in range(threads)]
        set_to = {}
        for x in mine:
            x.start()
        self.process.number = os.getpid
        with unittest.mock.patch.object(processes.os, "sched_setaffinity", lambda x, where: set_to.update({x: where})):
            ready.wait()
            self.process._worked = {x.native_id: 0.0 for x in mine}
            self.process.spread_threads(cores)
        ready.wait()
        done.set()
        for x in mine:
            x.join()
        return [set_to.get(x.native_id) for x in mine]

    def test_threads_that_have_a_core_each_leave_the_first_one(self):
        self.assertEqual(self.spread(2), [[1, 2]] * 2)

    def test_more_threads_than_that_have_all_cores(self):
        self.assertEqual(self.spread(3), [[0, 1, 2]] * 3)

    def ends(self, child, working=0.0):
        self.process.pidfd = os.pidfd_open(child.pid)
        self.addCleanup(os.close, self.process.pidfd)
        self.process._numbers = lambda: [child.pid]
        return self.process.ends(0.3, working), self.process.is_working

    def test_a_process_that_is_gone_has_ended(self):
        self.children[0].kill()
        self.assertEqual(self.ends(self.children[0]), (True, False))

    def test_a_process_that_does_not_end_is_at_work_or_waits(self):
        self.addCleanup(setattr, processes, "AT_REST_SECONDS", processes.AT_REST_SECONDS)
        self.wait_until_it_works(self.children[0])
        self.assertEqual(self.ends(self.children[0]), (False, True))
        processes.AT_REST_SECONDS = 0.05
        self.children[1].send_signal(signal.SIGSTOP)
        os.waitpid(self.children[1].pid, os.WUNTRACED)
        self.assertEqual(self.ends(self.children[1], working=60.0), (False, False))

    def test_a_process_that_works_at_its_end_is_waited_for(self):
        child = self.children[0]
        self.wait_until_it_works(child)
        threading.Timer(0.6, child.kill).start()
        self.assertEqual(self.ends(child, working=60.0), (True, False))

    def test_whose_waiter_is_gone_is_not_gone_itself(self):
        waiter, itself = self.children
        self.wait_until_it_works(itself)
        self.process.pidfd, self.process._firstfd = os.pidfd_open(waiter.pid), os.pidfd_open(itself.pid)
        self.addCleanup(os.close, self.process.pidfd)
        self.addCleanup(os.close, self.process._firstfd)
        waiter.kill()
        waiter.wait()
        self.process._ending, self.process._numbers = [itself.pid], list
        self.assertEqual((self.process.ends(0.3), self.process.is_working), (False, True))
        itself.kill()
        self.assertEqual((self.process.ends(10.0), self.process.is_working), (True, False))

    def test_a_process_that_shares_a_core_waits_for_it(self):
        core = {min(os.sched_getaffinity(0))}
        for child in self.children:
            os.sched_setaffinity(child.pid, core)
        end = time.monotonic() + 30
        while seconds_without_core(self.children[0].pid) < 0.05 and time.monotonic() < end:
            pass
        self.assertGreaterEqual(seconds_without_core(self.children[0].pid), 0.05)
        self.assertEqual(seconds_without_core(1 << 24), 0.0)

    def test_a_process_that_is_gone_has_no_clock(self):
        self.children[0].kill()
        self.children[0].wait()
        self.assertEqual(processor_seconds(self.children[0].pid), 0.0)


@unittest.skipIf(Process is None, "there is no torch here")
class WarmCalls(unittest.TestCase):
    def test_hold_one_output_at_a_time(self):
        """Two of 6 GiB each were held by a baseline that was warmed, and the referee found too little memory."""

        class Output:
            pass

        alive, seen = weakref.WeakSet(), []

        def model(*_inputs):
            seen.append(len(alive))
            alive.add(result := Output())
            return result

        commands = iter([native.WARM, native.LEAVE])
        x = Serving.__new__(Serving)
        x.lib = unittest.mock.Mock(
            **{
                "km_page_wait.side_effect": lambda _page, number: number + 1,
                "km_page_first.return_value": 0,
                "km_page_command.side_effect": lambda _page: next(commands),
                "km_page_count.return_value": 3,
                "km_page_place.return_value": 0,
            }
        )
        x.page = x.number = 0
        x.device, x.layout, x.told, x.returned = "cpu", None, None, []
        x.places, x.model, x.keep = [[types.SimpleNamespace(inputs=[])]], model, lambda out: out
        x.copy_, x.sync, x.fence = torch.Tensor.copy_, lambda: None, lambda: 0
        x.clocked()
        self.assertEqual(seen, [0, 0, 0])


if __name__ == "__main__":
    unittest.main()
