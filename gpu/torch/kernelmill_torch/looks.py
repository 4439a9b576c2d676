"""Kinds of contents that no block had yet. A few blocks make a verdict, and each has one kind: who is slow on a kind that is
not among them would be paid as if it were fast. So each other kind comes in a row of the candidate alone, whose outputs are
checked. Where that is slow, a block of it is timed next."""

import random
from typing import Callable

AT_ONCE = 2  # kinds after a block
SLOW = 1.25  # times what a row takes on the problem's own contents
TRIES = 2    # rows that must be slow, for somebody else may have had the core


class Looks:
    def __init__(self, kinds: list[str], dice: random.Random):
        self.unmet = list(kinds)
        dice.shuffle(self.unmet)
        self.doubted: list[str] = []  # to be timed

    @property
    def left(self) -> int:
        """Kinds of which it is not known yet."""
        return len(self.unmet) + len(self.doubted)

    def met(self, kind: str) -> None:
        """A block had it."""
        for kinds in (self.unmet, self.doubted):
            if kind in kinds:
                kinds.remove(kind)

    def look(self, usual: float, seconds_on: Callable[[str], float]) -> None:
        """At the next kinds. `usual` is what the candidate's calls take on the problem's own contents, `seconds_on` makes a row
        and says what they take there."""
        for kind in self.unmet[:AT_ONCE]:
            is_slow = all(seconds_on(kind) > SLOW * usual for _ in range(TRIES))
            self.unmet.remove(kind)
            if is_slow:
                self.doubted.append(kind)
