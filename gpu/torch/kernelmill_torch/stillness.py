"""Processes seen from outside, in /proc: what they start and what they work."""

import os
import time


def processor_seconds(number: int) -> float:
    """Of all threads of a process since it began; 0 when it is gone."""
    try:
        return time.clock_gettime(~number << 3 | 2)  # the kernel's name of another process's clock
    except OSError:
        return 0.0


def scheduled(task: str) -> tuple[float, float]:
    """Of a thread, by its folder below /proc: seconds of a processor that it had since it began, and in which it was ready and
    had no core. Zeros when it is gone, or where the kernel does not say."""
    try:
        with open(f"/proc/{task}/schedstat", "rb") as file:
            worked, waited = file.read().split()[:2]
        return int(worked) * 1e-9, int(waited) * 1e-9
    except (OSError, ValueError):
        return 0.0, 0.0


def threads_of(number: int) -> list[int]:
    """None when the process is gone."""
    try:
        return list(map(int, os.listdir(f"/proc/{number}/task")))
    except OSError:
        return []


def seconds_without_core(number: int) -> float:
    """Of the thread of a process that waited longest for a core, since it began."""
    return max((scheduled(f"{number}/task/{x}")[1] for x in threads_of(number)), default=0.0)


def children_of(number: int) -> list[int]:
    result: list[int] = []
    try:
        for task in os.listdir(f"/proc/{number}/task"):
            with open(f"/proc/{number}/task/{task}/children") as file:
                result.extend(map(int, file.read().split()))
    except (OSError, ValueError):
        pass  # it ended meanwhile
    return result
