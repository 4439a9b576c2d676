"""Rows of calls of the candidate and of the problem's own model, every output checked, and which pairs of them count."""

import functools
import math
import random
import statistics
import time
from typing import Any, Callable, Optional, Sequence

import torch

from kernelmill_torch import compare
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.candidate import seed_everything
from kernelmill_torch.contents import OWN
from kernelmill_torch.faults import Fault
from kernelmill_torch.intercept import Intercept, short_length
from kernelmill_torch.processes import Process
from kernelmill_torch.quiet import BASELINE_SECONDS, RETAKES, Quiet
from kernelmill_torch.rows import Gateless
from kernelmill_torch.watch import CANDIDATE, REFERENCE, Row, Watch

CALL_SECONDS = 5.0
DISTURBED = 1.08
RETAKE_SECONDS = 2.0  # after which no pair is taken again: who keeps the GPU busy would hold it until the deadline
APART_FOR_A_MEDIAN = 8
MOST_CRAMPED = 2
LEAST_SPARE = 64 << 20  # bytes
LOOKED_AT = 2  # calls of a row whose elements are held by their own size
FIRST_TIMED = 1000  # numbers of contents below are those of trials


def usual_of_few(rows: list[float]) -> float:
    """Other programs only ever make a row longer, so of few rows the lower quartile counts."""
    return statistics.median(rows) if len(rows) >= APART_FOR_A_MEDIAN else sorted(rows)[len(rows) // 4]


class MemoryMoved(Exception):
    """Outputs were read where the process had such once, and were not right."""


class TimedRows(Quiet):
    """REQUIRES: correctness was judged, which says by what rules timed outputs are."""

    def __init__(self, *judged: Any, **options: Any):
        super().__init__(*judged, **options)
        self.timed = FIRST_TIMED  # number of the next contents
        self.not_queued = 0  # rows behind the gate
        self.watch = Watch()
        self.rows: dict[
            str, tuple[list[float], list[float]]
        ] = {}  # by kind of contents, seconds a call: reference, candidate
        self.intercept = Intercept()
        self.cramped = [0, 0]  # rows that failed for want of memory: reference, candidate
        self.long_rows = [0, 0]  # that were plainly longer than others of their kind: reference, candidate

    def fixed(self) -> tuple[float, float]:
        """Seconds a call that are none's, and their standard error."""
        fixed, error = self.intercept.seconds(self.row_length, self.bench.free.fixed, self.bench.free.most_fixed)
        return fixed / self.row_length, error / self.row_length

    def fresh_inputs(self, count: int) -> list[int]:
        """Numbers of contents that no row had."""
        self.timed += count
        return [self.number("inputs", self.timed - count + i) for i in range(count)]

    def seconds_alone(self, kind: str) -> float:
        """Seconds a call in a row of the candidate on contents of a kind; checked. Raises Fault and Gateless."""
        self.kind, count = kind, self.row_length

        def row() -> float:
            row, check = self.candidate_row(self.fresh_inputs(count))
            check()
            return self.watch.candidate_seconds(row, self.bench.free) / count

        return self.again_where_it_counts_for_nothing(row)

    def undisturbed_pair(self, reference_first: bool) -> tuple[float, float]:
        """A pair of which neither row is plainly longer than others of its kind, nor the flushes before them: something
        else had the GPU or the core then. It is taken again, for either alike; nothing is ever subtracted. Where it is
        disturbed each time, or they take long, the shortest row of each kind counts."""
        takes, until = [], time.monotonic() + RETAKE_SECONDS
        while len(takes) < RETAKES and (not takes or time.monotonic() < until):
            mark = self.watch.mark()
            pair = self.pair(reference_first)
            disturbed = max(sum(self.watch.flushes(mark), [])) > self.bench.longest_flush()
            if not self.is_long(pair) and not disturbed:
                return pair
            takes.append(pair)
        return min(x[0] for x in takes), min(x[1] for x in takes)

    def is_long(self, pair: tuple[float, float]) -> bool:
        """Whether a row is plainly longer than others of its kind by somebody else's doing. A candidate whose rows are longer
        by so many seconds more often than the baseline's, and than chance has it, is slow now and then by itself: then
        these rows count like the others."""
        usual = []
        for past, seconds in zip(self.rows.setdefault(self.kind, ([], [])), pair):
            past.append(seconds)
            usual.append(statistics.median(past))
        plainly = (DISTURBED - 1) * usual[CANDIDATE]
        by_so_much = [x > most + plainly for x, most in zip(pair, usual)]
        for kind in (REFERENCE, CANDIDATE):
            self.long_rows[kind] += by_so_much[kind]
        known, own = self.long_rows
        return pair[REFERENCE] > DISTURBED * usual[REFERENCE] or (
            by_so_much[CANDIDATE] and own <= known + 2 * math.sqrt(known + 1) + 1
        )

    def pair(self, reference_first: bool) -> tuple[float, float]:
        """One row of each. Raises Gateless."""
        return self.again_where_it_counts_for_nothing(lambda: self.rows_of_pair(reference_first))

    def again_where_it_counts_for_nothing(self, rows: Callable[[], Any]) -> Any:
        """Rows once more where the candidate's memory has moved, and at times where calls could not be queued: somebody may have
        had the core. Raises Gateless."""
        while True:
            try:
                return rows()
            except MemoryMoved:  # twice at most
                continue
            except Gateless as e:
                self.not_queued += 1
                if self.not_queued > RETAKES:  # or a candidate could choose its rows
                    raise
                is_short = e.category == "out_of_memory"
            if is_short:
                self.bench.make_room()  # now that the exception holds no contents any more

    def rows_of_pair(self, reference_first: bool) -> tuple[float, float]:
        """One row of each, either on contents that nobody has seen before, and of the same laws: what a call takes may hang on
        how large numbers are. What comes before a row changes what a short call
        takes by some percent, so it is the same for both, as often the other's row as an audit: outputs of the first are
        checked after the second, unless they are too large to be put aside; calls are long then."""
        count, free, on_gpu = self.row_length, self.bench.free, self.bench.device == "cuda"
        others, seeds = ([self.number("inputs", self.timed + k * count + i) for i in range(count)] for k in range(2))
        laws = [self.number("laws", self.timed + i) for i in range(count)]
        self.timed += 2 * count
        short = short_length(count) if on_gpu and self.kind == OWN else 0
        if reference_first:
            reference = self.baseline_row(others, laws=laws)
        elif short:
            self.short_row(short)
        candidate, check = self.candidate_row(seeds, laws=laws)
        if not self.bench.is_aside:
            check()
            check = None
        if not reference_first:
            reference = self.baseline_row(others, laws=laws)
        elif short:
            self.short_row(short)
        if check:
            check()
        self.watch.rows[REFERENCE].append(reference)
        if self.kind == OWN:
            self.keep_for_intercept(self.intercept.long, reference)
        return (
            self.watch.reference_seconds(reference, free, on_gpu) / count,
            self.watch.candidate_seconds(candidate, free) / count,
        )

    def short_row(self, count: int) -> None:
        """One of the baseline, in the place where its row is in a pair of the other order: before the candidate's or after
        it. So nobody who could slow it knows whether a long or a short one comes."""
        self.keep_for_intercept(
            self.intercept.short, self.baseline_row([self.number("short", self.timed + i) for i in range(count)])
        )

    def keep_for_intercept(self, rows: list[float], row: Row) -> None:
        """Unless the flush before it was long: what somebody left on the GPU is no part of a row that is free."""
        if row.flushing <= self.bench.longest_flush():
            rows.append(row.calls)

    def candidate_row(
        self, seeds: list[int], is_apart: bool = False, laws: Sequence[int] = ()
    ) -> tuple[Row, Callable[[], None]]:
        """A row, and what checks its outputs."""
        bench, count = self.bench, len(seeds)
        known = self.rows.get(self.kind)
        most = 100 * statistics.median(known[0]) * count if known else self.first_call_seconds
        row, contents, seed = self.row_with_room(
            CANDIDATE, self.process, seeds, min(self.left(), CALL_SECONDS + most), is_apart, laws
        )
        if bench.gives_inputs:
            self.find(
                "output_is_input",
                "critical",
                "an output lies in the memory of the inputs; the problem's own model writes a new tensor",
            )
        self.blame_for_inputs(bench.changed_inputs)
        self.watch.rows[CANDIDATE].append(row)
        return row, functools.partial(self.audit, contents, bench.outputs, bench.samples, seed)

    def baseline_row(self, seeds: list[int], is_apart: bool = False, laws: Sequence[int] = ()) -> Row:
        seconds = max(self.left(), BASELINE_SECONDS)  # what is short of time here is the candidate's evaluation
        try:
            row, _, _ = self.row_with_room(REFERENCE, self.bench.baseline, seeds, seconds, is_apart, laws)
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        if self.bench.changed_inputs and self.bench.shares_arena and not self.bench.changes_inputs:
            self.background_work("inputs of the problem's own model were changed while it ran")  # who else has them?
        return row

    def row_with_room(
        self, side: int, process: Process, seeds: list[int], seconds: float, is_apart: bool, laws: Sequence[int]
    ) -> tuple[Row, list, int]:
        """A row, its contents, and the seed of its generators. One that found too little memory is made again, on other contents.
        Raises Fault and Gateless."""
        while True:
            contents, seed = self.prepare_row(process, seeds, laws), self.row_seed()
            try:
                return (
                    self.bench.row(process, len(seeds), seconds, contents, self.is_gated, seed, is_apart),
                    contents,
                    seed,
                )
            except Fault as e:
                if not self.may_lack_room(e, side):
                    raise
            del contents
            self.bench.release()
            seeds = self.fresh_inputs(len(seeds))

    def prepare_row(self, process: Process, seeds: list[int], laws: Sequence[int] = ()) -> list:
        """Returns the contents for the row, which the process does not see yet."""
        self.bench.prepare_kind(self.kind)
        contents = self.bench.draw(seeds, self.kind, laws)
        process.arena.move()
        process.arena.poison(len(seeds))
        return contents

    def may_lack_room(self, e: Fault, side: int) -> bool:
        """Whether a row failed for want of memory that we keep and do not need, which is to be given back then. Not before each row: what
        is given back is wiped, which takes the GPU's memory from the flushes and calls that follow. A candidate chooses few rows by that."""
        if (
            e.category != "out_of_memory"
            or self.cramped[side] >= MOST_CRAMPED
            or self.bench.spare_bytes() < LEAST_SPARE
        ):
            return False
        self.cramped[side] += 1
        return True

    def fault_of_baseline(self, e: Fault) -> Fault:
        """That the baseline failed is the problem's fault or ours, unless it works without the candidate: see blame.py."""
        self.bench.close_baseline()
        return self.bench.blame_problem(e)

    def audit(self, contents: list, outputs: list[BufferSet], sample: Optional[list], seed: int = 0) -> None:
        """Every output of a row; which are not what was sampled when it was done if they were written later. Raises Fault when
        one is wrong, MemoryMoved when it may have been right elsewhere."""
        bad = self.count_bad(contents, outputs, seed)
        if sample is not None:
            self.check_late(sample, outputs)
        if not bad:
            return
        if self.process.reach.moved():
            raise MemoryMoved
        if (
            self.is_gated
        ):  # a stream of its own may not have waited; what counts is whether it is right without the gate
            raise Gateless
        contents.clear()  # other draws come, and nobody asks for these again
        raise self.wrong_in_time(bad, is_tried=self.kind in self.tried or self.is_right_untimed())

    def count_bad(
        self, contents: list, outputs: list[BufferSet], seed: int = 0, known: Optional[list[torch.Tensor]] = None
    ) -> float:
        """Wrong elements in the outputs of a row, which began with a seed. A model may change the contents. `known`: what the
        baseline gave; before it calls anything wrong, that is computed once more."""
        drawn = contents[: len(outputs)]
        got = [x for one in outputs for x in one.outputs]
        wanted = known

        def bad(got: list[torch.Tensor], shifts: Sequence[float]) -> float:
            return compare.count_bad(list(zip(got, wanted, self.rules_when_timed(self.kind, wanted, shifts))))

        is_wrong = known is None or bad(got, [0.0] * len(known)) > 0
        if is_wrong:
            if seed:
                seed_everything(seed)
            wanted = [x for one in drawn for x in self.bench.problem.run(one)]
            is_wrong = bad(got, [0.0] * len(wanted)) > 0

        # Most are right as they are. What a draw's scale is takes four more runs of the model, and what is steady there seven.
        if not is_wrong:
            return self.wrong_of_some(drawn, outputs, wanted)
        shifts = self.bench.shifts(drawn, self.kind)
        found = bad(got, shifts)
        return found and bad(self.bench.forgive(got, wanted, drawn, self.kind), shifts)

    def wrong_of_some(self, drawn: list[Any], outputs: list[BufferSet], wanted: list[torch.Tensor]) -> float:
        """Elements of outputs that are right by the bounds of the whole, as wrong_by_own_size() has them."""
        if self.kind != OWN or not drawn or not self.asks_small_scales(drawn[0]):
            return 0.0
        return self.wrong_by_own_size([x for one in outputs for x in one.outputs], wanted, drawn)

    def wrong_by_own_size(self, got: list[torch.Tensor], wanted: list[torch.Tensor], drawn: list[Any]) -> float:
        """Elements of a few calls of a row, as small_scales.py has them; nobody knows which calls."""
        each, scales = len(wanted) // len(drawn), self.small_scales
        for i in random.SystemRandom().sample(range(len(drawn)), min(LOOKED_AT, len(drawn))):
            mine, want = (x[i * each : (i + 1) * each] for x in (got, wanted))
            if scales.seems_wrong(mine, want, self.bench.places):
                exact = self.bench.problem.run_exact(drawn[i])
                if exact is None:
                    continue
                with self.bench.again():
                    share = scales.wrong(mine, exact, drawn[i], self.bench.problem)
                if share:
                    return max(1.0, share * max(x.numel() for x in exact))
                scales.was_right = True
        return 0.0

    def is_right_untimed(self) -> bool:
        """Whether it is right on contents of the present kind where nobody times it. Raises Fault."""
        raise NotImplementedError

    def row_seed(self) -> int:
        """That a row begins with, where the model draws random numbers; else 0."""
        return self.number("generators", self.timed) or 1 if self.bench.is_random else 0
