"""What timed rows show of who was at work when nobody should have been, and what that costs."""

import math
import statistics
from typing import Iterator, NamedTuple, Optional

REFERENCE, CANDIDATE = 0, 1
ROWS = 4  # of a kind, before anything is said
LATEST = 32
AWAKE_SECONDS = 5e-5  # of a processor: more than it takes to obey a signal
SELDOM = 8  # one row in so many, and one more, may have it by a busy machine's doing
PARTS_BESIDES = "waking", "revealing", "turning", "taking", "fetching"  # of a row, besides its calls
UNFINISHED_SECONDS = 1.5e-4  # three times what honest medians of four looks at the GPU differ by


class Row(NamedTuple):
    """Seconds of the parts of a row, by the clock out here."""

    waking: float = 0.0  # 0 where nothing is there yet that it could work on
    revealing: float = 0.0  # contents put where it sees them, and caches flushed; 0 where it was stopped meanwhile
    turning: float = 0.0  # next to nothing, for which the GPU turns to it
    calls: float = 0.0
    taking: float = 0.0  # from the end of the calls until what they returned is out of its hands
    fetching: float = 0.0  # what they returned, where it had to go on for that
    awake: float = 0.0  # of a processor, which it worked while it was stopped
    flushing: float = 0.0  # of the caches
    looking: float = 0.0  # at whether the GPU is at rest when it says that it is done; part of the taking

    @property
    def besides(self) -> float:
        """In which it might have worked as well as in its calls."""
        return sum(getattr(self, part) for part in PARTS_BESIDES)


class Free(NamedTuple):
    """Seconds of a row of the baseline that are no calls', as they were learned before anybody was timed."""

    fixed: float = 0.0  # of a row without calls
    most_fixed: float = math.inf  # of any row, however long it takes later
    besides: float = 0.0  # calls: the longest
    limit: float = math.inf  # of those, however long they take in later rows: a candidate may have made them longer


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

    # What comes before and after the calls takes now more, now less. Nobody pays for that; but who has it longer than the
    # baseline in the median pays the difference, and who has it longer than nearly all the baseline's, in that row.

    def candidate_seconds(self, row: Row, free: Free) -> float:
        """Seconds of the calls of a row, with those before and after them in which the candidate must have worked."""
        return row.calls + max(0.0, self._usually_longer(free), row.besides - self._most(free))

    def reference_seconds(self, row: Row, free: Free, on_gpu: bool) -> float:
        """The same of the baseline. With a GPU nothing besides its calls counts, which a candidate's work there could make
        longer; on a CPU, where a stopped candidate does nothing, it is as the candidate's."""
        return row.calls + (0.0 if on_gpu else max(0.0, row.besides - self._most(free)))

    def _most(self, free: Free) -> float:
        """Seconds besides the calls that are free in a single row."""
        rows = self._besides(REFERENCE)
        if len(rows) < ROWS:
            return min(free.besides, free.limit)
        return min(statistics.quantiles(rows, n=20, method="inclusive")[-1], free.limit)

    def _usually_longer(self, free: Free) -> float:
        """Seconds besides the calls in the median, more than the baseline's, and more than chance has it."""
        reference, candidate = self._besides(REFERENCE), self._besides(CANDIDATE)
        if min(len(reference), len(candidate)) < ROWS:
            return 0.0
        return statistics.median(candidate) - min(
            statistics.median(reference) + _chance(reference, candidate), free.limit
        )

    def charged_besides(self, free: Free) -> dict[str, float]:
        """Seconds that the candidate pays in each row because it usually has longer what lies before and after its calls, and by how
        much it has each part longer (medians), for the record."""
        result = {"besides": self._usually_longer(free)}
        if result["besides"] > 0:
            for part in PARTS_BESIDES:
                reference, candidate = (
                    statistics.median(getattr(row, part) for row in kind[-LATEST:]) for kind in self.rows
                )
                result[f"besides_{part}"] = candidate - reference
        return result

    def _besides(self, kind: int) -> list[float]:
        return [x.besides for x in self.rows[kind][-LATEST:]]

    def fetching(self) -> float:
        """Seconds (median) that the candidate pays in a row for outputs that cannot be read where they lie."""
        rows = self.rows[CANDIDATE]
        return statistics.median(row.fetching for row in rows) if len(rows) >= ROWS else 0.0

    def findings(self) -> Iterator[tuple[str, str]]:
        """Rules that the candidate broke, with the evidence."""
        rows = self.rows[CANDIDATE]
        if len(rows) < ROWS:
            return
        # By no median: who works ahead in a part of the rows is paid for these.
        awake = [row.awake for row in rows if row.awake > AWAKE_SECONDS]
        if len(awake) > 1 + len(rows) // SELDOM:
            yield (
                "ran_while_stopped",
                (
                    f"the candidate worked {statistics.median(awake) * 1e3:.3f} ms (median) before "
                    f"{len(awake)} of {len(rows)} rows, while it was stopped"
                ),
            )
        usual, late = (statistics.median([row.looking for row in kind] or [0.0]) for kind in self.rows)
        if late > usual + UNFINISHED_SECONDS:
            yield (
                "unfinished_work",
                (
                    "the GPU was still at work when the candidate said that it was done: it answered "
                    f"after {late * 1e6:.0f} us, after the problem's own model {usual * 1e6:.0f} us "
                    "(medians)"
                ),
            )

    def long_before_candidate(self, longest: float) -> Optional[float]:
        """Seconds (median) of flushes before the candidate's rows, where these are too long and the others are not: both
        but for one in eight, of eight rows at least."""
        flushes = self.flushes()
        long = [sum(x > longest for x in kind) for kind in flushes]
        few = min(self.mark()) // 8
        if few and long[REFERENCE] <= few and long[CANDIDATE] >= len(flushes[CANDIDATE]) - few:
            return statistics.median(flushes[CANDIDATE])
        return None


def _chance(reference: list[float], candidate: list[float]) -> float:
    """What the medians of rows of either kind differ by."""
    quarters = statistics.quantiles(reference, n=4, method="inclusive")
    return 2 * (quarters[2] - quarters[0]) / math.sqrt(min(len(reference), len(candidate)))
