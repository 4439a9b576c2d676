"""Where timed processes run. With a GPU a call of some 10 µs is mostly Python and launches, and as fast as the core that it
happens to be on: asleep until now, or beside one that compiles. So baseline and candidate take turns on one core, and a
third process wakes that core before every row of either."""

import contextlib
import ctypes
import os
import random
import socket
from typing import Optional

from kernelmill_torch import native
from kernelmill_torch.faults import Fault
from kernelmill_torch.pool import Pool
from kernelmill_torch.processes import Process

FEWEST = 4  # cores, below which nobody can have one for himself
TIMED_NICE = -10
WAKES = 20  # some 0.3 ms
SECONDS = 5.0


def put_ahead(pid: int) -> None:
    """The main thread of a process is ahead of compilers from now on, where that is allowed; what it starts is not."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, pid, TIMED_NICE)
        with open(f"/proc/{pid}/autogroup", "w") as file:
            file.write(str(TIMED_NICE))


class Core:
    """A core for the timed processes of one slot, while this object lives: other slots choose another, and this process
    keeps off it."""

    def __init__(self, wanted: int = -1):
        """`wanted`: that compilers keep off; below 0 there is none."""
        # Who holds the clock, too: whoever takes its core for a slice of 3 ms makes a row so much longer, and does so row after row.
        put_ahead(os.getpid())
        self.allowed = os.sched_getaffinity(0)
        self.mark: Optional[socket.socket] = None
        self.waker: Optional[Process] = None
        self.number = self._choose(wanted)
        try:
            if self.number is not None:
                os.sched_setaffinity(0, self.allowed - {self.number})
        except OSError:  # a container that refuses it
            self.number = None

    def _choose(self, wanted: int) -> Optional[int]:
        here = ctypes.CDLL(None).sched_getcpu()
        others = sorted(self.allowed - {here})
        if len(others) + 1 < FEWEST:
            return None
        random.shuffle(others)
        if wanted in self.allowed:
            others = [wanted, *(x for x in others if x != wanted)]
        for number in others:
            mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                mark.bind(f"\0kernelmill-timed-core-{number}")
            except OSError:  # another slot has it
                mark.close()
                continue
            self.mark = mark
            return number
        return None

    def take_turns(self, pool: Pool, *timed: Process) -> bool:
        """Puts timed processes there, and one that wakes it; nothing is ever loaded into that. False where that may not
        be: then they run wherever the system puts them."""
        if self.number is None:
            return False
        if self.waker is not None and not self.waker.alive():
            self.waker.close()
            self.waker = None
        if self.waker is None:
            self.waker = pool.take("the process that wakes the core")
        if all(self._hold(x) for x in (self.waker, *timed)):
            return True
        for x in timed:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(x.number(), self.allowed)
        return False

    def _hold(self, process: Process) -> bool:
        """Puts the main thread of a process there, ahead of compilers; threads that it has already stay where they are."""
        try:
            os.sched_setaffinity(process.number(), {self.number})
        except OSError:
            return False
        put_ahead(process.number())
        return True

    def has(self, process: Process) -> bool:
        """Whether a process that was put there still is."""
        try:
            return os.sched_getaffinity(process.number()) == {self.number}
        except OSError:
            return True  # it ended

    def wake(self) -> None:
        """Python and the core as they are in the midst of work; who did it sleeps at once afterwards."""
        if self.waker is None:
            return
        try:
            for _ in range(WAKES):
                self.waker.call(native.WAKE, 0, 0, SECONDS, spin=0)
        except Fault:
            self.waker.close()
            self.waker = None
