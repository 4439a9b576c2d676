"""What timed rows show of who was at work when nobody should have been."""

import statistics
from typing import Iterator, Optional

from kernelmill_torch.processes import Row

REFERENCE, CANDIDATE = 0, 1
ROWS = 4  # of the candidate, before anything is said
AWAKE_SECONDS = 5e-5  # of a processor: more than it takes to obey a signal
UNFINISHED_SECONDS = 1.5e-4  # three times what honest medians of four looks at the GPU differ by


class Watch:
    """Rows of one judgement, of either kind."""

    def __init__(self) -> None:
        self.rows: tuple[list[Row], list[Row]] = ([], [])

    def mark(self) -> tuple[int, ...]:
        """How many rows of each kind there are."""
        return tuple(map(len, self.rows))

    def flushes(self, since: tuple[int, ...] = (0, 0)) -> list[list[float]]:
        """Seconds of the flushes before rows of each kind, after a mark."""
        return [[row.flushing for row in kind[count:]] for kind, count in zip(self.rows, since)]

    def findings(self) -> Iterator[tuple[str, str]]:
        """Rules that the candidate broke, with the evidence."""
        rows = self.rows[CANDIDATE]
        if len(rows) < ROWS:
            return
        awake = statistics.median(row.awake for row in rows)
        if awake > AWAKE_SECONDS:
            yield "ran_while_stopped", (f"the candidate worked {awake * 1e3:.3f} ms before a row (median), while it was "
                                        "stopped")
        usual, late = (statistics.median([row.looking for row in kind] or [0.0]) for kind in self.rows)
        if late > usual + UNFINISHED_SECONDS:
            yield "unfinished_work", ("the GPU was still at work when the candidate said that it was done: it answered "
                                      f"after {late * 1e6:.0f} us, after the problem's own model {usual * 1e6:.0f} us "
                                      "(medians)")

    def long_before_candidate(self, longest: float) -> Optional[float]:
        """Seconds (median) of flushes before the candidate's rows, where these are too long and the others are not: both
        but for one in eight, of eight rows at least."""
        flushes = self.flushes()
        long = [sum(x > longest for x in kind) for kind in flushes]
        few = min(self.mark()) // 8
        if few and long[REFERENCE] <= few and long[CANDIDATE] >= len(flushes[CANDIDATE]) - few:
            return statistics.median(flushes[CANDIDATE])
        return None
