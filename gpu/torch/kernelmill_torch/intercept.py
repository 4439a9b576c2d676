"""What a row takes that is none of its calls': rows of two lengths show it."""

import math
import statistics

SHORT = 4       # times fewer calls than in a row
FEWEST = 4      # rows of each length, to know it
OF_A_MEDIAN = 1.2533   # its standard error, by that of a mean
OF_A_NORMAL = 1.4826   # its deviation, by the median of what it is off
LEAST_LEFT = 0.1       # of a row's time
MOST_TO_KEEP_APART = 2e-6  # seconds of a call; an H200 takes 0.4 to 1.3 us
BESIDE_SHARE = 0.01        # of a call, and seconds
BESIDE_FLOOR = 0.8e-6
LAUNCHING = 1e-4           # seconds that a call alone may take more, which in a row are hidden by the calls before
TOGETHER_SHARE = 0.1       # of a call, and seconds: what rows of one call are not known better by
TOGETHER_FLOOR = 5e-6


def short_length(count: int) -> int:
    """Calls of a short row; 0 where there is none that is shorter."""
    return max(1, count // SHORT) if count > 1 else 0


def beside_others(candidate: float, candidate_apart: float, baseline: float, baseline_apart: float) -> float:
    """Seconds of a candidate's call that lie beside other calls' work, which no caller gains by; as beside_others() of
    gpu/referee/row_arithmetic.hpp. Of calls as they come, and of calls each of which begins when the one before is over."""
    cost = min(max(baseline_apart - baseline, 0.0), MOST_TO_KEEP_APART)
    beside = candidate_apart - cost - candidate
    return beside if beside > BESIDE_SHARE * candidate + BESIDE_FLOOR else 0.0


def together_with_others(candidate: float, alone: float, baseline: float, baseline_alone: float) -> float:
    """Seconds of a candidate's call that it saves because the calls of a row are made together: with one read of weights for all, or
    on what one call leaves idle. Who makes a call alone makes all of it. What is free is what the baseline's takes more alone
    (caches are cold), or a launch: whoever launches while the GPU works takes at most twice as long alone. On a CPU threads wake up
    in as much."""
    together = alone - candidate - max(min(candidate, LAUNCHING), min(baseline_alone - baseline, baseline))
    return together if together > TOGETHER_SHARE * candidate + TOGETHER_FLOOR else 0.0


def without(fixed: float, seconds: float) -> float:
    """A row's seconds without what is none of its calls'."""
    return max(seconds - fixed, LEAST_LEFT * seconds)


class Intercept:
    """Of rows of the baseline, seconds: by a line through the medians of either length."""

    def __init__(self) -> None:
        self.long: list[float] = []
        self.short: list[float] = []

    def seconds(self, count: int, known: float, most: float) -> tuple[float, float]:
        """For long rows of `count` calls: what was `known` before there were rows enough, later at least that and at `most` so
        much; and the standard error."""
        if min(len(self.long), len(self.short)) < FEWEST:
            return known, 0.0
        length = short_length(count)
        more = length / (count - length)  # of a step from short to long, that the short row's calls take
        found = (1 + more) * statistics.median(self.short) - more * statistics.median(self.long)
        error = math.hypot((1 + more) * _error(self.short), more * _error(self.long))
        return min(max(found, known), most), error


def _error(values: list[float]) -> float:
    """Standard error of the median."""
    middle = statistics.median(values)
    return OF_A_MEDIAN * OF_A_NORMAL * statistics.median(abs(x - middle) for x in values) / math.sqrt(len(values))
