"""Caches are flushed before calls are timed. That takes longer while another process has the GPU."""

import math
import time
from typing import Any

import torch

from kernelmill_torch.arena import Arena
from kernelmill_torch.buffers import Layout


class Flushes:
    """Part of a bench, whose attributes it uses."""

    device: str
    layout: Layout
    lib: Any
    cache_bytes: int  # of the GPU's second level

    def flush(self, calls: int = 0) -> float:
        """Evicts everything from the caches, before so many calls. Returns the seconds, which are more while another process is
        at work there."""
        if self.device == "cuda":
            self.lib.km_gpu_unpin()
            for warm in self.flush_buffer[:64].view(torch.int64).sum, self.flush_buffer[:64].zero_:
                warm()
        self.synchronize()
        started = time.monotonic()
        if self.device == "cuda":
            # Calls write back what is left in the cache when they begin, and leave there what they wrote last: as much as that.
            self.flush_buffer.view(torch.int64).sum()
            # From here on the GPU has work, and waits for other work there. That a core which waited launches 0.1 ms later,
            # more beside compilers and after long waits, is no work.
            started = time.monotonic()
            self.flush_buffer[: self.layout.left_to_write(self.cache_bytes, calls)].fill_(0)
        else:
            self.flush_buffer.add_(1)
        self.synchronize()
        return time.monotonic() - started

    def push_out(self, calls: int) -> None:
        """The flush of a batch, behind the fill: without waiting. What is left in the cache to be written back is as much as calls
        leave there."""
        self.flush_buffer.view(torch.int64).sum()
        self.flush_buffer[: self.layout.left_to_write(self.cache_bytes, calls)].fill_(0)

    def longest_flush(self) -> float:
        """What a flush takes at most while no other process has the GPU."""
        return max(1.5 * self.usual_flush, self.usual_flush + 1e-4) if self.device == "cuda" else math.inf

    def flushes_settle(self) -> bool:
        """Whether several flushes in a row take what is usual, within a second."""
        end = time.monotonic() + 1
        good = 0
        while good < 5 and time.monotonic() < end:
            good = good + 1 if self.flush() <= self.longest_flush() else 0
        return good == 5

    def rests(self) -> bool:
        """Whether no process is at work now and then: of a second's flushes one in eight is long at most."""
        flushes, end = [], time.monotonic() + 1
        while time.monotonic() < end:
            flushes.append(self.flush())
        return sum(x > self.longest_flush() for x in flushes) <= 1 + len(flushes) // 8

    def reveal(self, arena: Arena, contents: list[list[Any]]) -> tuple[float, float]:
        """Puts contents where a timed process sees them, and evicts them from the caches. Returns the seconds, and those of
        the second part."""
        self.speck.add_(1)  # the GPU takes some 0.15 ms to turn from another process to this one
        self.synchronize()
        started = time.monotonic()
        arena.fill(contents)
        flushing = self.flush(len(contents))
        return time.monotonic() - started, flushing
