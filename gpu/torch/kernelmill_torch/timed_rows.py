"""Rows of calls of the candidate and of the problem's own model, every output checked, and which pairs of them count."""

import functools
import math
import statistics
from typing import Any, Callable, Optional, Sequence

from kernelmill_torch import compare
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.candidate import seed_everything
from kernelmill_torch.contents import OWN
from kernelmill_torch.intercept import LAUNCHING, OPENING, Intercept, beside_others, short_length, together_with_others, without
from kernelmill_torch.processes import Fault, Process, Row
from kernelmill_torch.quiet import BASELINE_SECONDS, RETAKES, Quiet
from kernelmill_torch.rows import Gateless
from kernelmill_torch.watch import CANDIDATE, REFERENCE, Watch

CALL_SECONDS = 5.0
DISTURBED = 1.08
FEWEST_APART = 3
APART_FOR_A_MEDIAN = 8
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
        self.rows: dict[str, tuple[list[float], list[float]]] = {}  # by kind of contents, seconds a call: reference, candidate
        self.apart: tuple[list[float], list[float]] = ([], [])  # the same, of calls that were kept apart
        self.alone: tuple[list[Row], list[Row]] = ([], [])  # of one call
        self.alone_queued: tuple[list[Row], list[Row]] = ([], [])  # the same behind the gate
        self.can_queue_one = True
        self.intercept = Intercept()
        self.long_rows = [0, 0]  # that were plainly longer than others of their kind: reference, candidate

    def fixed(self) -> tuple[float, float]:
        """Seconds a call that are none's, and their standard error."""
        fixed, error = self.intercept.seconds(self.row_length, self.bench.free.fixed, self.bench.free.most_fixed)
        return fixed / self.row_length, error / self.row_length

    def rows_apart(self) -> None:
        """A row of each whose calls are kept apart; checked. Raises Fault and Gateless."""
        def rows() -> None:
            count, free = self.row_length, self.bench.free
            others, seeds = ([self.number("inputs", self.timed + k * count + i) for i in range(count)] for k in range(2))
            self.timed += 2 * count
            reference = self.baseline_row(others, True)
            candidate, check = self.candidate_row(seeds, True)
            check()
            self.apart[REFERENCE].append(self.watch.reference_seconds(reference, free, True) / count)
            self.apart[CANDIDATE].append(self.watch.candidate_seconds(candidate, free) / count)

        self.again_where_it_counts_for_nothing(rows)

    def kept_apart(self) -> tuple[float, float, float]:
        """Seconds a call of the candidate's that were kept apart, what it is charged because others ran side by side, and
        what the baseline's take more when they are kept apart; 0 where nothing is known."""
        known = self.rows.get(OWN)
        if known is None or len(self.apart[CANDIDATE]) < FEWEST_APART:
            return 0.0, 0.0, 0.0
        fixed, _ = self.fixed()
        reference, candidate = (without(fixed, statistics.median(x)) for x in known)
        reference_apart, apart = (without(fixed, usual_of_few(x)) for x in self.apart)
        return apart, beside_others(candidate, apart, reference, reference_apart), reference_apart - reference

    def rows_of_one(self) -> None:
        """A row of each with one call, of which the others cannot be made together; checked. Raises Fault and Gateless."""
        self.take_rows_of_one(self.alone)

    def queued_rows_of_one(self) -> None:
        """The same behind the gate: launches are over when the clock starts. Raises Fault."""
        was, self.is_gated = self.is_gated, True
        try:
            self.take_rows_of_one(self.alone_queued)
        except Gateless:
            self.can_queue_one = False
        finally:
            self.is_gated = was

    def take_rows_of_one(self, kept: tuple[list[Row], list[Row]]) -> None:
        def rows() -> None:
            others, seeds = [self.number("inputs", self.timed)], [self.number("inputs", self.timed + 1)]
            self.timed += 2
            reference = self.baseline_row(others)
            candidate, check = self.candidate_row(seeds)
            self.watch.rows[CANDIDATE].pop()  # what comes before and after fewer calls is not like the others'
            check()
            kept[REFERENCE].append(reference)
            kept[CANDIDATE].append(candidate)

        self.again_where_it_counts_for_nothing(rows)

    def together(self, rows: tuple[list[Row], list[Row]], has_launches: bool, opening: float = 0.0) -> tuple[float, float]:
        """Seconds of one of the candidate's calls alone by rows of one, and what it is charged because it makes those of a row
        together; 0 where nothing is known. `opening`: what rows of one begin with, and others do not."""
        known = self.rows.get(OWN)
        if known is None or len(rows[CANDIDATE]) < FEWEST_APART:
            return 0.0, 0.0
        fixed, _ = self.fixed()
        reference, candidate = (without(fixed, statistics.median(x)) for x in known)
        reference_alone, alone = (without(fixed * self.row_length, usual_of_few([row.calls for row in x])) for x in rows)
        before, own = (usual_of_few([row.besides for row in x]) for x in rows)
        alone += max(0.0, own - before)
        # Whoever launches while the GPU works takes at most twice as long alone; on a CPU threads wake up in as much.
        launching = min(candidate, LAUNCHING) if has_launches else 0.0
        return alone, together_with_others(candidate, alone, reference, reference_alone, launching, opening)

    def made_together(self) -> tuple[float, float]:
        """As together(). A call that waits for the GPU hides no launches from those after it, and of one that does not they are
        over where it is queued. Random numbers could be drawn there before the clock starts, so that less would be charged."""
        if self.bench.device != "cuda":
            return self.together(self.alone, True)
        found = self.together(self.alone, not self.is_gated and self.can_queue_one)
        if len(self.alone_queued[CANDIDATE]) < FEWEST_APART:
            return found
        queued = self.together(self.alone_queued, False, OPENING)
        return found if self.bench.is_random and found[1] > queued[1] else queued

    def may_be_launches(self) -> bool:
        """Whether a call alone takes so much more that rows behind the gate are to say whether that is launches."""
        return (self.bench.device == "cuda" and not self.is_gated and self.can_queue_one
                and len(self.alone_queued[CANDIDATE]) < FEWEST_APART and self.together(self.alone, False)[1] > 0)

    def seconds_alone(self, kind: str) -> float:
        """Seconds a call in a row of the candidate on contents of a kind; checked. Raises Fault and Gateless."""
        self.kind, count = kind, self.row_length

        def row() -> float:
            seeds = [self.number("inputs", self.timed + i) for i in range(count)]
            self.timed += count
            row, check = self.candidate_row(seeds)
            check()
            return self.watch.candidate_seconds(row, self.bench.free) / count

        return self.again_where_it_counts_for_nothing(row)

    def undisturbed_pair(self, reference_first: bool) -> tuple[float, float]:
        """A pair of which neither row is plainly longer than others of its kind, nor the flushes before them: something
        else had the GPU or the core then. It is taken again, for either alike; nothing is ever subtracted. Where it is
        disturbed each time, the shortest row of each kind counts."""
        takes = []
        for _ in range(RETAKES):
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
            by_so_much[CANDIDATE] and own <= known + 2 * math.sqrt(known + 1) + 1)

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
                pass
            except Gateless:
                self.not_queued += 1
                if self.not_queued > RETAKES:  # or a candidate could choose its rows
                    raise

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
            self.intercept.long.append(reference.calls)
        return (self.watch.reference_seconds(reference, free, on_gpu) / count,
                self.watch.candidate_seconds(candidate, free) / count)

    def short_row(self, count: int) -> None:
        """One of the baseline, in the place where its row is in a pair of the other order: before the candidate's or after
        it. So nobody who could slow it knows whether a long or a short one comes."""
        self.intercept.short.append(self.baseline_row([self.number("short", self.timed + i) for i in range(count)]).calls)

    def candidate_row(self, seeds: list[int], is_apart: bool = False, laws: Sequence[int] = ()) -> tuple[Row, Callable[[], None]]:
        """A row, and what checks its outputs."""
        bench, count = self.bench, len(seeds)
        known = self.rows.get(self.kind)
        most = 100 * statistics.median(known[0]) * count if known else self.first_call_seconds
        contents, seed = self.prepare_row(self.process, seeds, laws), self.row_seed()
        row = bench.row(self.process, count, min(self.left(), CALL_SECONDS + most), contents, self.is_gated, seed, is_apart)
        if bench.gives_inputs:
            self.find("output_is_input", "critical", "an output lies in the memory of the inputs; the problem's own model writes a new tensor")
        self.blame_for_inputs(bench.changed_inputs)
        self.watch.rows[CANDIDATE].append(row)
        return row, functools.partial(self.audit, contents, bench.outputs, bench.samples, seed)

    def baseline_row(self, seeds: list[int], is_apart: bool = False, laws: Sequence[int] = ()) -> Row:
        seconds = max(self.left(), BASELINE_SECONDS)  # what is short of time here is the candidate's evaluation
        contents = self.prepare_row(self.bench.baseline, seeds, laws)
        try:
            row = self.bench.row(self.bench.baseline, len(seeds), seconds, contents, self.is_gated, self.row_seed(), is_apart)
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        if self.bench.changed_inputs and self.bench.shares_arena and not self.bench.changes_inputs:
            self.background_work("inputs of the problem's own model were changed while it ran")  # who else has them?
        return row

    def prepare_row(self, process: Process, seeds: list[int], laws: Sequence[int] = ()) -> list:
        """Returns the contents for the row, which the process does not see yet."""
        self.bench.make_room()  # now, for what is given back is wiped while the GPU does other things
        contents = self.bench.draw(seeds, self.kind, laws)
        process.arena.move()
        process.arena.poison(len(seeds))
        return contents

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
        if self.is_gated:  # a stream of its own may not have waited; what counts is whether it is right without the gate
            raise Gateless
        if self.kind not in self.tried and not self.is_right_untimed():
            raise Fault("candidate", "wrong_result", f"wrong when it was timed, on other contents of the same shapes, in {bad:.0f} "
                        "elements", "compute the function for every value of its inputs")
        evidence = f"right in all trials, but wrong when it was timed, in {bad:.0f} elements"
        self.find("wrong_when_timed", "critical", evidence)
        raise Fault("candidate", "wrong_result", evidence)

    def count_bad(self, contents: list, outputs: list[BufferSet], seed: int = 0) -> float:
        """Wrong elements in the outputs of a row, which began with a seed. A model may change the contents."""
        if seed:
            seed_everything(seed)
        pairs = [(one.outputs, self.bench.problem.run(drawn)) for drawn, one in zip(contents, outputs)]
        return compare.count_bad([x for got, want in pairs for x in zip(got, want, self.rules_when_timed(self.kind, want))])

    def is_right_untimed(self) -> bool:
        """Whether it is right on contents of the present kind where nobody times it. Raises Fault."""
        raise NotImplementedError

    def row_seed(self) -> int:
        """That a row begins with, where the model draws random numbers; else 0."""
        return self.number("generators", self.timed) or 1 if self.bench.is_random else 0
