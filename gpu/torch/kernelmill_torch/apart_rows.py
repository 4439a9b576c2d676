"""Rows that tell what a candidate gains by making the calls of a row beside one another or together: calls that are kept apart, and
calls alone."""

import math
import os
import statistics
from typing import Any, Callable, NamedTuple, Optional

from kernelmill_torch.contents import OWN
from kernelmill_torch.faults import Fault
from kernelmill_torch.intercept import (
    COLD_LAUNCHES,
    COLDER,
    LAUNCHING,
    MOST_COLDER,
    MOSTLY_WORK,
    OPENING,
    PARITY,
    beside_others,
    beyond_chance,
    charge_of,
    cold_launches,
    error_of_median,
    saved_together,
    unseen_work,
    without,
)
from kernelmill_torch.quiet import BASELINE_SECONDS
from kernelmill_torch.rows import Gateless
from kernelmill_torch.timed_rows import TimedRows, usual_of_few
from kernelmill_torch.watch import CANDIDATE, REFERENCE, Row

QUIET_TAKES = 6
FEWEST_APART = 3
MOST_COLD_ROW = 100 * COLD_LAUNCHES  # seconds; of more, first launches are no part
FEWEST_QUEUED, ALL_QUEUED = 4, 8  # rows of each side that say what the GPU's work takes
SIDES = math.sqrt(2)  # times the error of one side's rows: of their difference


def usual_rows(rows: tuple[list[Row], list[Row]], on_gpu: bool = True) -> tuple[float, float]:
    """Seconds of rows of the baseline, and of the candidate with what it has longer before and after its calls. On a GPU of whole
    rows: who has the work of one row there and that of another in its calls shows none by the least of either. On a CPU, where who
    is woken waits milliseconds for its core, now here and now there, the least of either part."""
    usual: Callable[[list[float]], float] = usual_of_few if on_gpu else min
    reference, own = (usual([row.calls for row in side] or [0.0]) for side in rows)
    if not on_gpu:
        before, besides = (usual([row.besides for row in side] or [0.0]) for side in rows)
        return reference, own + max(0.0, besides - before)
    whole, own_whole = (usual([row.calls + row.besides for row in side] or [0.0]) for side in rows)
    return reference, max(own, own_whole - (whole - reference))


class Saved(NamedTuple):
    """Seconds: one of the candidate's calls alone, 0 where that is not known; what it saves in a row, at least; by which that is off."""

    alone: float
    saved: float
    error: float


class Disturbed(Exception):
    """Somebody had the GPU whenever a row of the baseline was to be made: the seconds of a flush."""

    def __init__(self, seconds: float):
        super().__init__(seconds)
        self.seconds = seconds


class ApartRows(TimedRows):
    def __init__(self, *judged: Any, **options: Any):
        super().__init__(*judged, **options)
        self.forget_apart()
        self.can_queue_one = self.can_queue_row = self.can_queue_both = True
        self.opening = 0.0  # seconds of a row behind the gate that are no call's

    def forget_apart(self) -> None:
        self.apart: tuple[list[float], list[float]] = (
            [],
            [],
        )  # seconds a call of calls that were kept apart: reference, candidate
        self.apart_queued: list[float] = []  # the candidate's behind the gate
        self.alone: tuple[list[Row], list[Row]] = ([], [])  # of one call
        self.alone_queued: tuple[list[Row], list[Row]] = ([], [])  # the same behind the gate
        self.queued: tuple[list[Row], list[Row]] = ([], [])  # whole rows behind the gate

    def rows_apart(self) -> None:
        """A row of each whose calls are kept apart; checked. Raises Fault and Gateless."""

        def rows() -> None:
            count, free = self.row_length, self.bench.free
            reference = self.quiet_row_of_baseline(count, True)
            candidate, check = self.candidate_row(self.fresh_inputs(count), True)
            check()
            self.apart[REFERENCE].append(self.watch.reference_seconds(reference, free, True) / count)
            self.apart[CANDIDATE].append(self.watch.candidate_seconds(candidate, free) / count)

        self.again_where_it_counts_for_nothing(rows)

    def kept_apart(self, in_doubt: bool = False) -> tuple[float, float, float]:
        """Seconds a call of the candidate's that were kept apart, what it is charged because others ran side by side, and
        what the baseline's take more when they are kept apart; 0 where nothing is known. `in_doubt`: or what it may be charged once
        more rows leave less to chance."""
        known = self.rows.get(OWN)
        if known is None or len(self.apart[CANDIDATE]) < FEWEST_APART:
            return 0.0, 0.0, 0.0
        fixed, _ = self.fixed()
        reference, candidate = (without(fixed, statistics.median(x)) for x in known)
        reference_apart, apart = (without(fixed, usual_of_few(x)) for x in self.apart)
        if len(self.apart_queued) >= FEWEST_APART:
            apart = min(
                apart, usual_of_few(self.apart_queued)
            )  # what is longer is what Python takes to keep them apart
        error = (
            0.0
            if in_doubt
            else SIDES * math.hypot(error_of_median(self.apart[REFERENCE]), error_of_median(known[REFERENCE]))
        )
        return apart, beside_others(candidate, apart, reference, reference_apart, error), reference_apart - reference

    def may_be_fences(self) -> bool:
        """Whether calls apart take so much more that a row behind the gate is to say whether that is the GPU's work. There launches
        and what keeps them apart are over when the clock starts, and work that lay beside other work is not."""
        return (
            self.bench.device == "cuda"
            and not self.is_gated
            and self.bench.can_queue
            and self.can_queue_row
            and len(self.apart_queued) < FEWEST_APART
            and self.kept_apart(in_doubt=True)[1] > 0
        )

    def queued_row_apart(self) -> None:
        """The candidate's, for may_be_fences(); checked. Raises Fault and Disturbed."""

        def row() -> None:
            row, check = self.candidate_row(self.fresh_inputs(self.row_length), True)
            self.watch.rows[CANDIDATE].pop()
            check()
            self.apart_queued.append(max(row.calls - self.opening, 0.0) / self.row_length)

        self.can_queue_row = self.behind_gate(row)

    def rows_of_one(self) -> None:
        """A row of each with one call, of which the others cannot be made together; checked. Raises Fault and Gateless."""
        self.again_where_it_counts_for_nothing(lambda: self.take_rows_of_one(self.alone))

    def queued_rows_of_one(self) -> None:
        """The same behind the gate: launches are over when the clock starts. Raises Fault."""
        self.can_queue_one = self.behind_gate(lambda: self.take_rows_of_one(self.alone_queued))

    def may_be_cold(self) -> bool:
        """Whether rows behind the gate are to say what the GPU's work of a row takes. REQUIRES: there are rows of the problem's own
        contents."""
        wanted = ALL_QUEUED if self.can_queue_both else FEWEST_QUEUED
        return (
            self.bench.device == "cuda"
            and not self.is_gated
            and not self.bench.is_random
            and self.bench.can_queue_rows
            and len(self.queued[REFERENCE]) < wanted
            and self.row_length * max(map(statistics.median, self.rows[OWN])) < MOST_COLD_ROW
        )

    def queued_rows(self) -> None:
        """A row of each behind the gate, for may_be_cold(), in an order that nobody knows; checked. Of the baseline alone where the
        candidate's cannot wait there: it chooses that, and is to gain nothing. Raises Fault and Disturbed."""
        known, own = self.queued

        def rows() -> None:
            reference, candidate = self.rows_of(self.row_length, os.urandom(1)[0] % 2 == 0)
            known.append(reference)
            if candidate.flushing <= self.bench.longest_flush():
                own.append(candidate)

        if self.can_queue_both:
            self.can_queue_both = self.behind_gate(rows)
        else:
            self.behind_gate(lambda: known.append(self.quiet_row_of_baseline(self.row_length)))
        self.not_queued = 0

    def queue_rows(self, times: int) -> None:
        """queued_rows(), at most so often. Raises Fault and Disturbed."""
        for _ in range(times):
            if self.may_be_cold():
                self.queued_rows()

    def cold(self, calls: Optional[tuple[float, float]] = None) -> tuple[float, float]:
        """Seconds a call of the baseline and of the candidate that first launches of a row take, and no call; 0 where nobody knows
        its work. `calls`: what calls of either take in rows, if not what the medians say."""
        count = self.row_length
        rows = [count * x for x in calls or self.in_a_row()] if OWN in self.rows else []
        return tuple(cold_launches(row, work) / count if work else 0.0 for row, work in zip(rows, self.works())) or (
            0.0,
            0.0,
        )

    def proven_cold(self) -> tuple[float, float]:
        """What of cold() the low end of an interval believes. A candidate can tell rows behind the gate, so of its own no more than of
        the baseline's. Below 0 where more was taken from it than it has: its calls take no less than the GPU's work. Of who shows none
        an empty row alone is fixed."""
        if self.bench.device != "cuda" or self.is_gated or OWN not in self.rows:
            return 0.0, 0.0
        count, (reference, candidate) = self.row_length, self.cold()
        work, own = self.works()
        if count == 1:
            return self.proven_of_one(work, own)
        if own:
            unseen = unseen_work(count * self.unclamped(CANDIDATE), own, count * self.unclamped(REFERENCE), work)
            return reference, -unseen / count if unseen else min(candidate, reference)
        return reference, min(0.0, self.bench.free.fixed / count - self.fixed()[0])

    def proven_of_one(self, work: float, own: float) -> tuple[float, float]:
        """The same in rows of one call, each of which has a first launch that no call before hides. That the baseline's is late is no
        speed of a candidate's: its calls take no longer than the GPU's work of them is worth beside the candidate's. Of who shows none nothing is fixed."""
        reference, candidate = self.unclamped(REFERENCE), self.unclamped(CANDIDATE)
        if not own:
            return max(0.0, reference - work) if work else 0.0, -self.fixed()[0]
        sure = max(candidate, own)
        return max(0.0, reference - work / own * sure), candidate - sure

    def unclamped(self, side: int) -> float:
        """Seconds of a call among others of a row, which may be below 0 where it is less than what is fixed."""
        return statistics.median(self.rows[OWN][side]) - self.fixed()[0]

    def works(self) -> tuple[float, float]:
        """Seconds of the GPU's work of a row of the baseline and of the candidate, by rows behind the gate; 0 where these are too few. The
        candidate's with what it has longer than the baseline before and after its calls."""
        if self.is_gated or len(self.queued[REFERENCE]) < FEWEST_QUEUED:
            return 0.0, 0.0
        work, own = (max(x - self.opening, 0.0) for x in usual_rows(self.queued))
        return work, own if len(self.queued[CANDIDATE]) >= FEWEST_QUEUED else 0.0

    def behind_gate(self, rows: Callable[[], Any]) -> bool:
        """Makes rows whose launches are over when the clock starts. Whether they can be queued. Raises Fault and Disturbed."""
        was = self.is_gated
        try:
            if not self.opening:
                self.opening = self.again_where_it_counts_for_nothing(self.baseline_opening)
            self.is_gated = True
            self.again_where_it_counts_for_nothing(rows)
            return True
        except Gateless:
            return False
        finally:
            self.is_gated = was

    def baseline_opening(self) -> float:
        """As learn_opening() of the bench. Raises Fault, which is not the candidate's, and Gateless."""
        try:
            return self.bench.learn_opening(self.bench.baseline, BASELINE_SECONDS)
        except Fault as e:
            raise self.fault_of_baseline(e) from None

    def take_rows_of_one(self, kept: tuple[list[Row], list[Row]]) -> None:
        for rows, row in zip(kept, self.rows_of(1)):
            rows.append(row)

    def rows_of(self, count: int, reference_first: bool = True) -> tuple[Row, Row]:
        """One of so many calls of the baseline and of the candidate, which is checked. Raises Fault, Gateless and Disturbed."""
        reference = self.quiet_row_of_baseline(count) if reference_first else None
        candidate, check = self.candidate_row(self.fresh_inputs(count))
        self.watch.rows[CANDIDATE].pop()  # what comes before and after these is not like the others'
        check()
        return reference or self.quiet_row_of_baseline(count), candidate

    def quiet_row_of_baseline(self, count: int, is_apart: bool = False) -> Row:
        """A row of which a candidate knows when it comes, and which makes more free the longer it takes. What was left on the GPU
        makes it longer, and the flush before it: then it is made again. Raises Fault, Gateless and Disturbed."""
        for _ in range(QUIET_TAKES):
            row = self.baseline_row(self.fresh_inputs(count), is_apart)
            if row.flushing <= self.bench.longest_flush():
                return row
        raise Disturbed(row.flushing)

    def of_one(self, rows: tuple[list[Row], list[Row]]) -> tuple[float, float]:
        """Seconds of a call alone by rows of one, of the baseline and of the candidate. On a CPU who is woken for one call waits
        for its core, milliseconds where others work, and now and then does not. Behind the gate a call may take next to nothing
        beside what opens it. The baseline takes no less alone than in a row: what is none of its calls' is no more than that leaves,
        where a machine that is now faster, now slower makes it seem so."""
        reference, candidate = usual_rows(rows, self.bench.device == "cuda")
        if rows is self.alone_queued:
            return max(reference - self.opening, 0.0), max(candidate - self.opening, 0.0)
        fixed = min(self.fixed()[0] * self.row_length, max(reference - self.in_a_row()[REFERENCE], 0.0))
        return without(fixed, reference), without(fixed, candidate)

    def error_of_one(self, *sides: tuple[list[Row], list[Row]]) -> float:
        """By which what rows of one say of both is off, seconds: as far as the baseline's differ. A candidate's could as it likes."""
        if self.bench.device != "cuda":
            return 0.0
        return SIDES * math.hypot(*(error_of_median([row.calls for row in rows[REFERENCE]]) for rows in sides))

    def in_a_row(self) -> tuple[float, float]:
        """Seconds of a call among others of a row, of the baseline and of the candidate, on the problem's own contents."""
        fixed, _ = self.fixed()
        reference, candidate = (without(fixed, statistics.median(x)) for x in self.rows[OWN])
        return reference, candidate

    def together(self, rows: tuple[list[Row], list[Row]], has_launches: bool, opening: float = 0.0) -> Saved:
        """Seconds of one of the candidate's calls alone by rows of one, and what it saves because it makes those of a row together; 0
        where nothing is known. `opening`: what rows of one begin with, and others do not."""
        if OWN not in self.rows or len(rows[CANDIDATE]) < FEWEST_APART:
            return Saved(0.0, 0.0, 0.0)
        reference, candidate = self.in_a_row()
        reference_alone, alone = self.of_one(rows)
        # Whoever launches while the GPU works takes at most twice as long alone; on a CPU threads wake up in as much.
        launching = min(candidate, LAUNCHING) if has_launches else 0.0
        return Saved(
            alone,
            saved_together(candidate, alone, reference, reference_alone, launching, opening),
            self.error_of_one(rows),
        )

    def launched_together(self) -> Saved:
        """The same of launches: those of one call are what it takes alone and not behind the gate, where nobody takes less than
        the baseline by doing more. In a row, whose calls launch one after the other, they take no longer than the calls, but for
        what the baseline's take more alone. Nobody knows that of a baseline that launches do not limit: there at
        least three times as long is free. REQUIRES: there are rows behind the gate."""
        reference, candidate = self.in_a_row()
        reference_alone, alone = self.of_one(self.alone)
        reference_queued, queued = self.of_one(self.alone_queued)
        # One call behind the gate is known no better than what opens it; of a whole row that is a small part.
        work = self.works()[REFERENCE] / self.row_length or reference_queued
        reference_queued = min(reference_queued, work)
        launches = reference_alone - reference_queued
        colder = COLDER * candidate * max(0.0, launches / reference - 1)
        if work >= MOSTLY_WORK * reference:
            colder = max(colder, min(MOST_COLDER * candidate, LAUNCHING))
        saved = saved_together(candidate, alone - min(queued, reference_queued), reference, launches, colder)
        return Saved(alone, saved, self.error_of_one(self.alone, self.alone_queued))

    def ways_together(self) -> list[Saved]:
        """By what may show that calls are made together. A call that waits for the GPU hides no launches from those after it, and of
        one that does not they are over where it is queued. Random numbers could be drawn there before the clock starts, so that less work would be charged, not fewer launches."""
        if self.row_length < 2:
            return []
        if self.bench.device != "cuda":  # a stopped candidate makes no baseline slow
            return [self.together(self.alone, True, math.inf)]
        found = self.together(self.alone, not self.is_gated and self.can_queue_one)
        if len(self.alone_queued[CANDIDATE]) < FEWEST_APART:
            return [found]
        return [self.together(self.alone_queued, False, OPENING), self.launched_together()] + [
            found
        ] * self.bench.is_random

    def made_together(self, in_doubt: bool = False) -> tuple[float, float]:
        """Seconds of one of the candidate's calls alone, and what it is charged because it makes those of a row together. `in_doubt`: or
        what it may be charged once more rows leave less to chance."""
        return max(
            ((x.alone, self.charge_for(x, in_doubt)) for x in self.ways_together()),
            key=lambda x: x[1],
            default=(0.0, 0.0),
        )

    def charge_for(self, x: Saved, in_doubt: bool) -> float:
        if not x.alone:
            return 0.0
        candidate = self.in_a_row()[CANDIDATE]
        return charge_of(candidate, x.alone, beyond_chance(x.saved, candidate, x.alone, 0.0 if in_doubt else x.error))

    def to_parity(self, charge: float) -> float:
        """On a GPU: a charge takes away a speedup that is not there: a call that takes as long as the baseline's has none. What rows
        of one say of a process whose launches are late for that moment, beside other programs, would be several times its call."""
        if self.bench.device != "cuda" or OWN not in self.rows:
            return charge
        reference, candidate = self.in_a_row()
        return max(0.0, min(charge, PARITY * reference - candidate))

    def seen(self) -> dict[str, float]:
        """Seconds by which a candidate is charged, for the record: what of a row is no call's, at most so much; what it has longer
        before and after its calls; what opens the gate; what first launches of a row take, and no call; calls alone, and alone behind
        the gate."""
        fixed, _ = self.fixed()
        result = {
            "fixed": fixed * self.row_length,
            "fixed_at_most": self.bench.free.most_fixed,
            "opening": self.opening,
        }
        result |= self.watch.charged_besides(self.bench.free)
        for name, rows in ("alone", self.alone), ("queued", self.alone_queued):
            if len(rows[CANDIDATE]) >= FEWEST_APART:
                result[name + "_reference"], result[name + "_candidate"] = self.of_one(rows)
        result["cold_reference"], result["cold_candidate"] = (x * self.row_length for x in self.cold())
        if self.row_length > 1:
            result["unseen_work"] = -self.proven_cold()[1] * self.row_length
        return {name: x for name, x in result.items() if 0 < x < math.inf}

    def baseline_waits(self) -> bool:
        """Whether the baseline may have waited for its core in all rows of one until now, by which too much would be free."""
        if self.bench.device == "cuda" or OWN not in self.rows or len(self.alone[REFERENCE]) < FEWEST_APART:
            return False
        return self.of_one(self.alone)[REFERENCE] > 2 * self.in_a_row()[REFERENCE]

    def may_be_launches(self) -> bool:
        """Whether a call alone takes so much more that rows behind the gate are to say whether that is launches."""
        return self.can_be_alone_behind_gate() and self.charge_for(self.together(self.alone, False), in_doubt=True) > 0

    def can_be_alone_behind_gate(self) -> bool:
        """Whether there may be more rows of one behind the gate, where it takes some to tell anything."""
        return (
            self.bench.device == "cuda"
            and not self.is_gated
            and self.bench.can_queue
            and self.can_queue_one
            and len(self.alone_queued[CANDIDATE]) < FEWEST_APART
        )
