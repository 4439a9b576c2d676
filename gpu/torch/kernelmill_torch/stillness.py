"""Processes seen from outside, in /proc: what they start, what they work, and whether they stand still."""

import os
import time

STILL_SECONDS = 0.1  # in which a process that was told to stop has stopped, also on a busy machine


def processor_seconds(number: int) -> float:
    """Of all threads of a process since it began; 0 when it is gone."""
    try:
        return time.clock_gettime(~number << 3 | 2)  # the kernel's name of another process's clock
    except OSError:
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


def stands_still(number: int) -> bool:
    """Whether no thread of a process that is told to stop has a processor, waits for one, or sleeps so that it must still wake to
    stop. Who waits takes no time either, but goes on when it has one, until the first of them finds that they were told."""
    try:
        tasks = os.listdir(f"/proc/{number}/task")
    except OSError:
        return True
    return all(state_of(f"/proc/{number}/task/{task}") not in (b"R", b"S") for task in tasks)


def state_of(task: str) -> bytes:
    """The kernel's letter for what a thread does; X when it is gone."""
    try:
        with open(task + "/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1]
    except OSError:
        return b"X"


def stand_still(numbers: set[int]) -> dict[int, float]:
    """What processes that are told to stop have worked when they have."""
    until = time.monotonic() + STILL_SECONDS
    while not all(map(stands_still, numbers)) and time.monotonic() < until:
        time.sleep(1e-4)
    before, now = None, {x: processor_seconds(x) for x in numbers}
    while now != before and time.monotonic() < until:  # who has just stopped is still on its way from the processor
        time.sleep(1e-4)
        before, now = now, {x: processor_seconds(x) for x in numbers}
    return now


def send_signal(number: int, what: int) -> None:
    try:
        os.kill(number, what)
    except ProcessLookupError:
        pass


def children_of(number: int) -> list[int]:
    result: list[int] = []
    try:
        for task in os.listdir(f"/proc/{number}/task"):
            with open(f"/proc/{number}/task/{task}/children") as file:
                result.extend(map(int, file.read().split()))
    except (OSError, ValueError):
        pass  # it ended meanwhile
    return result
