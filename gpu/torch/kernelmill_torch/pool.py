"""Processes that were started before somebody needs them."""

from collections import deque

from kernelmill_torch.faults import Fault
from kernelmill_torch.processes import Process
from kernelmill_torch.warm import Zygote


class Pool:
    """Processes that are up before there is a candidate: with a GPU, starting one takes half a second."""

    def __init__(self, lib, zygote: Zygote, size: int):
        self.lib, self.zygote, self.size = lib, zygote, size
        self.waiting: deque[Process] = deque()

    def refill(self) -> None:
        """Starts what is missing, without waiting for it."""
        while len(self.waiting) < self.size:
            self.waiting.append(Process(self.lib, self.zygote, "the candidate"))

    def settle(self) -> None:
        """Waits until nothing is still starting, which on a GPU would disturb who is timed."""
        for process in list(self.waiting):
            try:
                process.settle()
            except Fault:
                self.waiting.remove(process)
                process.close()

    def take(self, who: str) -> Process:
        """One that is up."""
        while self.waiting:
            process = self.waiting.popleft()
            try:
                process.settle()
            except Fault:
                process.close()
                continue
            if not process.alive():  # whoever killed it meanwhile has not killed a candidate
                process.close()
                continue
            process.who = who
            process.note_kills()
            return process
        process = Process(self.lib, self.zygote, who)
        process.settle()
        return process
