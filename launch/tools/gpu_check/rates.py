"""Bounds of error rates, without a library."""

import math


def binomial_at_most(count, trials, rate):
    """The probability of at most `count` in `trials` where each has a `rate`."""
    if rate <= 0:
        return 1.0
    if rate >= 1:
        return 1.0 if count >= trials else 0.0
    total = 0.0
    for k in range(count + 1):
        total += math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + k * math.log(rate)
            + (trials - k) * math.log1p(-rate)
        )
    return min(1.0, total)


def root_of(falling):
    """Where a falling function of a rate passes zero."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


def clopper_pearson(count, trials, confidence=0.95):
    """The exact interval of a rate of which `count` in `trials` were seen."""
    if trials == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    high = 1.0 if count == trials else root_of(lambda p: binomial_at_most(count, trials, p) - tail)
    low = 0.0 if count == 0 else root_of(lambda p: tail - (1 - binomial_at_most(count - 1, trials, p)))
    return low, high


def words(count, trials):
    low, high = clopper_pearson(count, trials)
    return (
        f"{count} of {trials} ({100 * count / max(1, trials):.2f} %, 95 % bounds {100 * low:.2f} to {100 * high:.2f} %)"
    )
