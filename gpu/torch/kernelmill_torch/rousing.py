"""A GPU that rested has a low clock, and takes up to two seconds of work to raise it. gpu/referee/device/rousing.hpp is its twin."""

import time
from typing import Callable

NEARLY = 0.9
PATIENCE = 2.5  # seconds
CYCLES = 4_000_000  # of a look at the clock: 2 ms


def clock_mhz() -> float:
    """Of the multiprocessors, by how long so many of its cycles take; 0 where this torch cannot tell. Waits for the GPU."""
    import torch

    if not hasattr(torch.cuda, "_sleep"):
        return 0.0
    torch.cuda.synchronize()
    started = time.monotonic()
    torch.cuda._sleep(CYCLES)
    torch.cuda.synchronize()
    return CYCLES / (time.monotonic() - started) * 1e-6


class Rousing:
    def __init__(self, nominal_mhz: float = 0.0):
        self.known = nominal_mhz  # the highest; 0: none

    def rouse(
        self, work: Callable[[], None], clock: Callable[[], float], now: Callable[[], float] = time.monotonic
    ) -> None:
        """Has the GPU work until its clock is nearly the highest known. One that does not get there in time is not waited for again:
        its clock is held down, and what it reached is known."""
        started, highest = now(), 0.0
        while True:
            work()
            mhz = clock()
            if not mhz:
                return
            highest = max(highest, mhz)
            if mhz >= NEARLY * self.known > 0:
                self.known = max(self.known, mhz)
                return
            if now() - started > PATIENCE:
                break
        self.known = highest


def nominal_mhz() -> float:
    """The highest clock by the driver's word; 0 where this torch does not say."""
    import torch

    return getattr(torch.cuda.get_device_properties(0), "clock_rate", 0) / 1000
