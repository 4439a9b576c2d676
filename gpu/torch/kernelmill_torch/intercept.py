"""What a row takes that is none of its calls': rows of two lengths show it."""

import math
import statistics

SHORT = 4  # times fewer calls than in a row
FEWEST = 4  # rows of each length, to know it
OF_A_MEDIAN = 1.2533  # its standard error, by that of a mean
OF_A_NORMAL = 1.4826  # its deviation, by the median of what it is off
LEAST_LEFT = 0.1  # of a row's time
MOST_TO_KEEP_APART = 2e-6  # seconds of a call; an H200 takes 0.4 to 1.3 us
MOST_TO_FENCE = 0.15  # of a call of the baseline's that launches limit: a fence takes Python 3 to 8 us, beside an H100
BESIDE_SHARE = 0.01  # of a call, and seconds
BESIDE_FLOOR = 0.8e-6
BESIDE_CHANCE = 0.05, 5e-6  # at most, of a call, and seconds
LAUNCHING = 1e-4  # seconds that launches of a call alone may take, which in a row are hidden by the calls before
OPENING = 2e-5  # seconds that opening a gate is not known better by than from rows without calls
COLDER = 1.5  # times what the baseline's launches take more alone than in a row
MOST_COLDER = 2  # of a call in a row: what launches take more alone, where the baseline does not say
MOSTLY_WORK = 0.8  # of the baseline's call, the GPU's: launches do not limit it
TOGETHER_SHARE = 0.1  # of a call, and seconds: what rows of one call are not known better by
TOGETHER_FLOOR = 5e-6
TOGETHER_CHANCE = 0.1, 15e-6
PARITY = 1.05  # of the baseline's call: nobody is charged beyond it
COLD_LAUNCHES = 1.5e-4  # seconds of a row by which first launches are later than if the core had not waited
COLD_SHARE = 0.15  # of the GPU's work in a row, at most
UNSEEN_SHARE = 0.05  # of a candidate's work behind the gate, by which it is not known better


def short_length(count: int) -> int:
    """Calls of a short row; 0 where there is none that is shorter."""
    return max(1, count // SHORT) if count > 1 else 0


def beside_others(
    candidate: float, candidate_apart: float, baseline: float, baseline_apart: float, error: float = 0.0
) -> float:
    """Seconds of a candidate's call that lie beside other calls' work, which no caller gains by; as beside_others() of
    gpu/referee/row_arithmetic.hpp. Of calls as they come, and of calls each of which begins when the one before is over.
    `error`: by which the difference of such times is off."""
    cost = min(max(baseline_apart - baseline, 0.0), max(MOST_TO_KEEP_APART, MOST_TO_FENCE * baseline))
    beside = candidate_apart - cost - candidate
    return (
        beside
        if beside > BESIDE_SHARE * candidate + BESIDE_FLOOR + _chance(error, candidate_apart, BESIDE_CHANCE)
        else 0.0
    )


def saved_together(
    candidate: float, alone: float, baseline: float, baseline_alone: float, launching: float, opening: float = 0.0
) -> float:
    """Seconds of a candidate's call that it saves because the calls of a row are made together: with one read of weights for all, or
    on what one call leaves idle. Who makes a call alone makes all of it. What is free is what the baseline's takes more alone
    (caches are cold; rows of one begin otherwise, by at most `opening`), or launches, where these may be part of it."""
    return alone - candidate - max(launching, min(baseline_alone - baseline, baseline + opening))


def beyond_chance(saved: float, candidate: float, alone: float, error: float = 0.0) -> float:
    """What is saved, where that is more than rows of one call are known by. `error`: by which the difference of times alone is off."""
    return (
        saved if saved > TOGETHER_SHARE * candidate + TOGETHER_FLOOR + _chance(error, alone, TOGETHER_CHANCE) else 0.0
    )


def charge_of(candidate: float, alone: float, together: float) -> float:
    """Seconds for what a candidate saves by making calls together. Whose calls take twice as long alone is paid as for one alone,
    where nothing is free, and a tenth more: by so much do processes differ there."""
    return max(together, (1 + TOGETHER_SHARE) * alone - candidate) if together > candidate else together


def cold_launches(row: float, work: float) -> float:
    """Seconds of a row that are none of its calls', by what the row takes without what is fixed, and by the GPU's work of its calls
    alone. Calls back to back take what the GPU needs, or their launches where these take longer. In a row the GPU also waits for the
    first launches, and a core that waited for contents makes these late (an H200 beside other programs' caches: 0.05 to 0.18 ms
    where Triton launches, as long on another core, whoever waits how): so much of a row is nobody's. What is more is launches', and
    paid. Never below 0: whoever makes the baseline's work behind a gate longer makes nothing of its rows longer."""
    most = min(COLD_LAUNCHES, COLD_SHARE * work)
    more = row - work
    return max(0.0, min(more, 2 * most - more))


def unseen_work(row: float, work: float, reference_row: float, reference_work: float) -> float:
    """Seconds of the GPU's work that a candidate's row does not show, because more was taken from it as fixed than it has: its launches are
    on time and the baseline's are late. Known to OPENING, or what the baseline's rows do not show either, up to twice that, and to a
    small part of the work."""
    error = min(max(reference_work - reference_row, OPENING), 2 * OPENING, UNSEEN_SHARE * work)
    return max(0.0, work - row - error)


def _chance(error: float, seconds: float, most: tuple[float, float]) -> float:
    """Seconds that chance makes of an error, where calls can be told apart: a share of what is asked at most, or seconds. Whoever
    makes the baseline's rows uneven is to gain no more, nor one that is far faster than these."""
    share, least = most
    return min(2 * error, max(share * seconds, least), seconds / 2)


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
        error = math.hypot((1 + more) * error_of_median(self.short), more * error_of_median(self.long))
        return min(max(found, known), most), error


def error_of_median(values: list[float]) -> float:
    """Its standard error."""
    middle = statistics.median(values)
    return OF_A_MEDIAN * OF_A_NORMAL * statistics.median(abs(x - middle) for x in values) / math.sqrt(len(values))
