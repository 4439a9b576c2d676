"""What plain processes know of a module, and how far verdicts are off it. A sitting is what one plain process said:
{name: {clock: (candidate ms, reference ms, ratio), or None where that clock does not see its work}}."""

import collections
import statistics
from typing import NamedTuple, Optional

from gpu_check import common
from gpu_check.common import promise, say

LONG_MS = 0.05  # calls of so much and more
WITHIN = (0.03, 0.06)  # of those, of shorter ones
COPIES_WITHIN = 0.02
LEAST_JUDGED = 0.5  # of the modules: few that are right prove nothing of the others
CALLS_BEYOND = 0.25  # of all: so many move what is paid, the middle of all blocks, and one odd row does not
SAME_CODE = ("copy", "twice", "three_times")  # as the reference: no contents can change their speedup
MOST_NAMED = 12
LAUNCHES = 0.15  # of a call back to back, that is not the GPU's work: then launches limit it
HELD = 0.8  # of the intervals of those, which are of 95 %, but launches take 17 to 31 µs in two plain processes


class Range(NamedTuple):
    """What sittings say. Processes differ, by where their memory lies and by how fast the host is just then."""

    low: float
    middle: float
    high: float

    def off(self, value):
        """How far a value lies outside, relative to the nearer end."""
        return value / self.low - 1 if value < self.low else max(0.0, value / self.high - 1)

    def words(self, digits):
        return f"{self.low:.{digits}f}-{self.high:.{digits}f}"


def range_of(values):
    return Range(min(values), sum(values) / len(values), max(values))


class Known(NamedTuple):
    """By one clock, milliseconds."""

    candidate: Range
    reference: Range
    ratio: Range
    sittings: int = 1


def known_by(clock, name, sittings) -> Optional[Known]:
    """What sittings say of a module by one clock; nothing where one of them cannot see its work by this clock."""
    rows = [x[name].get(clock) for x in sittings if x.get(name)]
    if not rows or None in rows:
        return None
    return Known(*(range_of(values) for values in zip(*rows)), len(rows))


def launches_limit(call: Optional[Known], device: Optional[Known], host: Optional[Known] = None, slower=1.0):
    """Whether the host's pace makes a time by calls, of the module or of the reference, in one of the sittings: no
    event sees that. Or may make it in a verdict, where the host, who queues calls in these times, is so many times
    slower at some moments."""
    sides = ("candidate", "reference")
    seen = bool(call and device) and any(
        getattr(device, x).middle < (1 - LAUNCHES) * getattr(call, x).high for x in sides
    )
    return (
        seen
        or bool(device and host)
        and any((1 - LAUNCHES) * getattr(device, x).middle < slower * getattr(host, x).low for x in sides)
    )


def slower_host(sittings):
    """{problem: how many times slower the host queued all its modules in one sitting than in another,
    or those of most problems}."""
    found, by_problem = {}, {}
    for number, sitting in enumerate(sittings):
        for name, times in sitting.items():
            if times and times.get("host"):
                found.setdefault(name.split()[0], {}).setdefault(name, {})[number] = times["host"][0]
    for problem, modules in found.items():
        both = set.intersection(*(set(x) for x in modules.values()))
        sums = [sum(x[number] for x in modules.values()) for number in both]
        by_problem[problem] = max(sums) / min(sums) if sums else 1.0
    usual = statistics.median(by_problem.values()) if by_problem else 1.0
    return {problem: max(usual, slower) for problem, slower in by_problem.items()}


def depends_on_contents(verdict):
    """Whether the speedup is that of a kind of contents on which the candidate is slower than on the problem's own."""
    return "depends_on_contents" in common.reasons(verdict)


def pair(verdict, clock):
    """(candidate ms, reference ms) of a verdict by a clock, on the problem's own contents, or None."""
    timing = verdict.get("timing") or {}
    found = timing.get(f"{clock}_ms")
    if not timing.get("measured"):
        return None
    asked = timing.get("clock_asked") == clock
    if (
        asked and depends_on_contents(verdict) and timing.get("kinds")
    ):  # the other times may be those of the slowest kind
        found = {side: timing["kinds"][0][f"{side}_ms"] for side in ("candidate", "reference")}
    if not found:  # a lane that has one clock
        return (timing["candidate_ms"], timing["reference_ms"]) if asked and clock == "call" else None
    return found["candidate"], found["reference"]


def own_speedup_alone(verdict, module, most):
    """The ratio of the own contents where others have another speedup and that is why the paid one differs;
    else nothing.

    What is paid is the middle of all blocks, so only kinds beyond it can have moved it: those must have a quarter of
    the calls. Short calls are never excused, for there even copies differ by 10 to 30 % from kind to kind; nor is the
    reference's own code."""
    kinds, paid = verdict["timing"].get("kinds") or [], verdict["timing"]["speedup"]["estimate"]
    if len(kinds) < 2 or most != WITHIN[0] or module in SAME_CODE or module.endswith("_baseline"):
        return None
    own, *others = ((x["reference_ms"] / x["candidate_ms"], x["calls"]) for x in kinds)
    up = paid > own[0]
    edge = own[0] * (1 + most if up else 1 - most)
    edge = max(edge, paid) if up else min(edge, paid)
    beyond = sum(calls for ratio, calls in others if (ratio > edge if up else ratio < edge))
    return own[0] if beyond >= CALLS_BEYOND * sum(x["calls"] for x in kinds) else None


def middle_of(values):
    """Of two in the middle the one that is further off."""
    return max(statistics.median_low(values), statistics.median_high(values), key=abs)


def limit_of(ms):
    return WITHIN[0] if ms >= LONG_MS else WITHIN[1]


TITLE = (
    f"{'problem and module':44} {'clock':6} {'true reference':>16} {'true candidate':>16} {'true ratio':>13} "
    f"{'of':>2} {'our ref':>9} "
    f"{'our cand':>9} {'ratio':>7} {'off':>8}"
)


class Findings:
    """What was off, by what was compared: (how far, what it may be, words of the module).
    Of a module that is judged several times the middle verdict counts."""

    def __init__(self, name):
        self.name, self.found, self.missing, self.slower_contents, self.other_contents = name, {}, [], [], []
        self.timed = set()  # (clock, words of a module)
        # Of calls that launches limit: (how far what is paid is off, whether its interval holds the truth, words).
        self.limited = []

    def add(self, kind, off, most, words):
        self.found.setdefault(kind, []).append((off, most, words))

    def compare(self, clock, verdict, truth, words, limited=False):
        """One verdict and what is Known by one clock. Returns a line for people. `limited`: by launches."""
        ours = pair(verdict, clock)
        most = limit_of(min(truth.candidate.middle, truth.reference.middle))
        line = (
            f"{words:44} {clock:6} {truth.reference.words(4):>16} {truth.candidate.words(4):>16} "
            f"{truth.ratio.words(3):>13} "
            f"{truth.sittings:2} "
        )
        if not ours:
            self.missing.append((clock, words))
            return (
                line
                + f"{verdict.get('outcome')}: {(verdict.get('error') or {}).get('message') or 'no time by this clock'}"[
                    :110
                ]
            )
        self.timed.add((clock, words))
        ratio = ours[1] / ours[0]
        off = truth.ratio.off(ratio)
        if not limited:
            for side, own, true in (("candidate", ours[0], truth.candidate), ("reference", ours[1], truth.reference)):
                self.add(f"{clock}: times", true.off(own), limit_of(true.middle), f"{words} {side}")
            self.add(f"{clock}: ratio of the two times", off, most, words)
        line += f"{ours[1]:9.4f} {ours[0]:9.4f} {ratio:7.3f} {off * 100:+6.1f} %"
        # Of the judged process itself: where they agree with us, it is the process that differs and not the clock.
        events = {c["name"]: c["value"] for c in verdict.get("conditions", [])}.get("time_by_events")
        line += f"  its own events {events:.4f}" if events and clock == "device" else ""
        is_paid = verdict["timing"].get("clock_asked") == clock and (verdict["timing"].get("speedup") or {}).get(
            "estimate"
        )
        return line + (self.compare_paid(clock, verdict, truth.ratio, most, words, limited) if is_paid else "")

    def compare_paid(self, clock, verdict, truth, most, words, limited):
        speedup, module = verdict["timing"]["speedup"], words.split()[1]
        paid = speedup["estimate"]
        own = own_speedup_alone(verdict, module, most)
        if limited:
            self.limited.append((truth.off(paid), speedup["low"] <= truth.high and truth.low <= speedup["high"], words))
        elif depends_on_contents(verdict):  # of which a plain process knows nothing
            self.slower_contents.append(words)
        else:
            self.add(f"{clock}: speedup that is paid", truth.off(own or paid), most, words)
            if own:
                self.other_contents.append((clock, words))
        if module == "copy" and not limited:
            self.add(f"{clock}: copies", paid - 1, COPIES_WITHIN, words)
        return f"  paid {paid:6.3f} [{speedup['low']:.3f}, {speedup['high']:.3f}] {truth.off(paid) * 100:+6.1f} %"

    def off_modules(self):
        """Names of those of which something is off, by the middle of their verdicts, or was not timed."""
        off = {words for found in self.found.values() for off, most, words in self.middles(found) if abs(off) > most}
        return {" ".join(words.split()[:2]) for words in off | {words for _, words in self.missing}}

    @staticmethod
    def middles(found):
        """The same of each module, by the middle of its verdicts."""
        modules = {}
        for by, most, words in found:
            modules.setdefault(words, []).append((by, most))
        return [(middle_of([x for x, _ in rows]), rows[0][1], words) for words, rows in modules.items()]

    def promise(self, judged, asked):
        """Says all of it, of the modules that were judged."""
        promise(
            judged >= LEAST_JUDGED * asked,
            f"truth, {self.name}: {judged} of {asked} modules judged, at least half of them",
        )
        for kind, found in sorted(self.found.items()):
            promise(*self.words_of(kind, found))
        if self.limited:
            held = sum(holds for _, holds, _ in self.limited)
            named = ", ".join(
                f"{words} {off * 100:+.1f} %"
                for off, _, words in sorted(self.limited, key=lambda x: -abs(x[0]))[:MOST_NAMED]
            )
            promise(
                held >= HELD * len(self.limited),
                f"truth, {self.name}, calls that launches limit, which follow the host's pace: the interval of "
                f"what is paid meets the truth of {held} of {len(self.limited)}, at least {HELD:.0%}; off: {named}",
            )
        if self.slower_contents:
            say(
                "        paid for contents on which they are slower, "
                f"so not compared ({len(self.slower_contents)} verdicts): "
                f"{', '.join(dict.fromkeys(self.slower_contents))}"
            )
        if self.other_contents:
            say(
                "        other contents have another speedup, so that of their own alone is compared "
                f"({len(self.other_contents)} verdicts): "
                f"{', '.join(dict.fromkeys(words for _, words in self.other_contents))}"
            )
        if self.missing:
            never = sorted(set(self.missing) - self.timed)
            named = ", ".join(f"{words} by {clock}" for clock, words in never or sorted(set(self.missing)))[:300]
            promise(
                not never,
                f"truth, {self.name}: no verdict has a time of {len(never)}, "
                f"and single ones have none {len(self.missing)} times: {named}",
            )

    def words_of(self, kind, found):
        """Whether all are within, and the words, the worst by its own bound first."""
        each, most_verdicts = found, max(collections.Counter(words for *_, words in found).values())
        found = sorted(self.middles(each), key=lambda x: -abs(x[0]) / x[1])
        off = [x for x in found if abs(x[0]) > x[1]]
        named = ", ".join(f"{words} {by * 100:+.1f} %" for by, _, words in (off or found[:1])[:MOST_NAMED])
        bounds = (
            "within 2 % of one"
            if kind.endswith("copies")
            else f"within {WITHIN[0] * 100:.0f} % of the truth ({WITHIN[1] * 100:.0f} % below {LONG_MS * 1e3:.0f} µs)"
        )
        if len(each) > len(found):
            bounds += (
                f", by the middle of up to {most_verdicts} verdicts (single ones: "
                f"{sum(abs(x[0]) <= x[1] for x in each)} of {len(each)})"
            )
        count = sum(kind == f"{clock}: speedup that is paid" for clock, _ in dict.fromkeys(self.other_contents))
        alone = f" ({count} of them by their own contents alone)" if count else ""
        return not off, (
            f"truth, {self.name}, {kind}: {len(found) - len(off)} of {len(found)} {bounds}{alone}; "
            f"{'off' if off else 'worst'}: {named}"
        )
