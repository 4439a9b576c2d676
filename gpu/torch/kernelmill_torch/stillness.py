"""Processes seen from outside, in /proc: what they start and what they work."""

import os
import time


def processor_seconds(number: int) -> float:
    """Of all threads of a process since it began; 0 when it is gone."""
    try:
        return time.clock_gettime(~number << 3 | 2)  # the kernel's name of another process's clock
    except OSError:
        return 0.0


def seconds_of_thread(number: int, thread: int) -> float:
    """Of a processor, of one thread of a process since it began; 0 when it is gone."""
    try:
        with open(f"/proc/{number}/task/{thread}/schedstat", "rb") as file:
            return int(file.read().split()[0]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


def seconds_without_core(number: int) -> float:
    """In which a thread of the process was ready and had no core, since it began; of the thread that waited longest. 0 where
    the kernel does not say."""
    longest = 0
    try:
        for task in os.listdir(f"/proc/{number}/task"):
            with open(f"/proc/{number}/task/{task}/schedstat", "rb") as file:
                longest = max(longest, int(file.read().split()[1]))
    except (OSError, ValueError, IndexError):
        pass  # it ended meanwhile
    return longest * 1e-9


def children_of(number: int) -> list[int]:
    result: list[int] = []
    try:
        for task in os.listdir(f"/proc/{number}/task"):
            with open(f"/proc/{number}/task/{task}/children") as file:
                result.extend(map(int, file.read().split()))
    except (OSError, ValueError):
        pass  # it ended meanwhile
    return result
