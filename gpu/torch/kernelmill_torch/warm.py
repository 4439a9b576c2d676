"""The referee's end of the warm process, which forks the others."""

import socket
from collections import deque
from typing import Optional

from kernelmill_torch import channel
from kernelmill_torch.faults import Fault

START_SECONDS = 60.0


class Zygote:
    """The socket of the warm process."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.statuses: dict[int, int] = {}
        self.over = False  # it has ended
        self.facts: dict[str, str] = {}
        self.forked: deque = deque()

    def await_ready(self, seconds: float) -> None:
        """Waits until torch is imported there. Raises Fault."""
        while not self.facts:
            self._take(seconds)

    def _take(self, seconds: float) -> None:
        try:
            message, descriptors = channel.receive(self.sock, seconds)
        except channel.TimedOut:
            raise Fault(
                "infrastructure", "python_failed", f"the warm Python process said nothing for {seconds:.0f} s"
            ) from None
        except channel.Closed:
            self.over = True
            raise Fault(
                "infrastructure",
                "python_failed",
                "the warm Python process ended",
                "`kernelmill doctor` tries the interpreter",
            ) from None
        if "ready" in message:
            self.facts = message["ready"]
        elif "ended" in message:
            self.statuses[message["ended"]] = message["status"]
        elif "pid" in message:
            self.forked.append((message["pid"], descriptors[0]))
        elif "failed" in message:
            raise Fault("infrastructure", "python_failed", "the warm Python process refused: " + message["failed"])

    def fork(self, descriptors: tuple[int, ...]) -> tuple[int, int]:
        """A new process: its number over there, and its descriptor."""
        try:
            channel.send(self.sock, {"op": "fork"}, descriptors)
        except channel.Closed:
            raise Fault("infrastructure", "python_failed", "the warm Python process ended") from None
        while not self.forked:
            self._take(START_SECONDS)
        return self.forked.popleft()

    def status_of(self, pid: int, seconds: float = 5.0) -> Optional[int]:
        """How a process ended; None when nobody said so in time. Raises Fault where the warm process ended, for all that
        it had forked ends then."""
        try:
            while pid not in self.statuses:
                self._take(seconds)
        except Fault:
            if self.over:
                raise
            return None
        return self.statuses.pop(pid)
