"""Kinds of contents that no block had yet. A few blocks make a verdict, and each has one kind: who is slow on a kind that is
not among them would be paid as if it were fast. So each other kind comes in a row of the candidate alone, whose outputs are
checked. Where that is slow, a block of it is timed next.

All come at once, as soon as a block shows what is usual: a candidate that uses up the time has no row less. What is usual is
asked again after each block, for a candidate could begin with slow rows, beside which nothing else is slow."""

import random
import statistics
from typing import Callable

from kernelmill_torch.intercept import without

SLOW = 1.05  # times what a row takes on the problem's own contents, and more where rows differ by themselves:
MOST_SLOW = 1.25  # at most so much
TRIES = 3  # rows that must be slow, for somebody else may have had the core


def slow_times(baseline: list[float]) -> float:
    """How many times longer a row must be to be called slow, by what rows of the baseline differ by."""
    low, middle, high = statistics.quantiles(baseline, n=4, method="inclusive") if len(baseline) > 1 else [1.0] * 3
    return min(MOST_SLOW, SLOW + 2 * (high - low) / middle)


class Looks:
    def __init__(self, kinds: list[str], dice: random.Random):
        self.unmet = list(kinds)
        dice.shuffle(self.unmet)
        self.seen: dict[str, list[float]] = {}  # what rows of the others took
        self.doubted: list[str] = []  # of those seen, to be timed

    @property
    def left(self) -> int:
        """Kinds of which it is not known yet."""
        return len(self.unmet) + len(self.doubted)

    def met(self, kind: str) -> None:
        """A block had it."""
        self.seen.pop(kind, None)
        for kinds in (self.unmet, self.doubted):
            if kind in kinds:
                kinds.remove(kind)

    def look(self, usual: float, fixed: float, slow: float, seconds_on: Callable[[str], float]) -> None:
        """At all kinds that are left, and once more at what was seen. `usual` is what a row of the candidate takes on the problem's own
        contents, `fixed` what of it is none of its calls', both as far as is known now; `seconds_on` makes a row and says what it
        takes. All are seconds a call. `slow`: of slow_times()."""

        def are_slow(rows: list[float]) -> bool:
            return without(fixed, min(rows)) > slow * without(fixed, usual)

        for kind in list(self.unmet):
            self.seen[kind] = [seconds_on(kind)]
            self.unmet.remove(kind)
        for kind, rows in self.seen.items():
            while are_slow(rows) and len(rows) < TRIES:
                rows.append(seconds_on(kind))
        self.doubted = [kind for kind, rows in self.seen.items() if are_slow(rows)]
