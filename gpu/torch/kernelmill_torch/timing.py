"""A candidate against the clock: rows of calls, beside those of the problem's own model, every output checked."""

import functools
import math
import os
import random
import statistics
import time
from typing import Any, Callable, Iterable, Iterator, Optional

from kernelmill_torch import compare
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.candidate import seed_everything
from kernelmill_torch.contents import OWN, plan
from kernelmill_torch.intercept import Intercept, short_length, without
from kernelmill_torch.judged import Judged
from kernelmill_torch.looks import Looks
from kernelmill_torch.processes import Fault, Process, Row
from kernelmill_torch.rows import LEARNING_ROWS, Gateless
from kernelmill_torch.watch import CANDIDATE, REFERENCE, Watch

CALL_SECONDS = 5.0
BASELINE_SECONDS = 20.0
RETAKES = 3
DISTURBED = 1.08
ALONE_SECONDS = 1.0  # in which who uses the GPU now and then would be seen
OTHER_PAIRS = 5  # by the clock that is not paid, after one that finds nothing warm
OTHER_ROWS = 4   # of each length, from which its costs are learned
FIRST_TIMED = 1000  # numbers of contents below are those of trials


class MemoryMoved(Exception):
    """Outputs were read where the process had such once, and were not right."""


class Timing(Judged):
    """REQUIRES: correctness was judged, which says by what rules timed outputs are."""

    def __init__(self, *judged: Any, **options: Any):
        super().__init__(*judged, **options)
        self.held = False  # on the core where the timed processes take turns
        self.timed = FIRST_TIMED  # number of the next contents
        self.row_length = 0
        self.not_queued = 0  # rows behind the gate
        self.is_strict = False  # whether each part of a row counts; by either clock
        self.watch = Watch()
        self.rows: dict[str, tuple[list[float], list[float]]] = {}  # by kind of contents, seconds a call: reference, candidate
        self.intercept = Intercept()
        self.long_rows = [0, 0]  # that were plainly longer than others of their kind: reference, candidate
        self.plan: Optional[Iterator[str]] = None  # kinds of the blocks to come
        self.looks: Optional[Looks] = None  # at the kinds that no block had yet

    def learn_quietly(self) -> None:
        """What rows of the baseline take by a clock, while no candidate is there that could make it more: once for each problem.
        Raises Fault."""
        bench, clock = self.bench, self.clock
        if clock in bench.learned or self.mode != "honest":
            return
        if bench.baseline_seed is None:
            bench.use_parameters(int.from_bytes(os.urandom(8), "little") >> 1)
        baseline = bench.start_baseline(self.pool, bench.baseline_seed, BASELINE_SECONDS)
        contents = bench.draw([self.number("quiet", i) for i in range(bench.layout.sets)])
        try:
            bench.row(baseline, 1, BASELINE_SECONDS, contents[:1])
            self.row_length = bench.row_length or bench.calibrate(baseline, BASELINE_SECONDS, contents)
        except Fault as e:
            bench.close_baseline()
            raise bench.blame_problem(e) from None
        self.learn_costs(contents, BASELINE_SECONDS)
        bench.learned.add(clock)
        bench.row_length, self.row_length = self.row_length, 0
        self.lap("baseline")

    def prepare_timing(self) -> None:
        """Baseline up, both warm, row length and the cost of taking outputs known."""
        bench = self.bench
        baseline = bench.start_baseline(self.pool, bench.baseline_seed, self.left())
        self.pool.settle()
        seeds = [self.number("warm", i) for i in range(bench.layout.sets)]
        bench.make_room()
        contents = bench.draw(seeds)
        seconds = max(self.left(), BASELINE_SECONDS)
        try:
            # Its threads come to life where the candidate's did, on any core.
            bench.row(baseline, 1, seconds, contents[:1])
            self.held = self.core is not None and self.core.take_turns(self.pool, baseline, self.process)
            bench.wake_core = self.core.wake if self.held else lambda: None
            length = bench.row_length or bench.calibrate(baseline, seconds, contents)
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        self.row_length = length if self.mode == "honest" else 1
        self.learn_costs(contents, seconds)
        self.warm_up(seeds, contents)
        self.lap("baseline")

    def learn_costs(self, contents: list, seconds: float, times: int = LEARNING_ROWS) -> None:
        """What is learned while somebody else uses the GPU would be free for the candidate. Where the baseline's calls cannot
        be queued, there are fewer in a row; where none can, all are timed with their launches. Raises Fault."""
        def learn() -> tuple[list[float]]:
            try:
                return (self.bench.learn_costs(self.bench.baseline, self.row_length, seconds, contents, self.is_strict,
                                               self.is_gated, times),)
            except Fault as e:
                raise self.fault_of_baseline(e) from None

        length = self.row_length
        while True:
            try:
                return self.quietly(learn)
            except Gateless:
                self.is_gated = self.row_length > 1
                self.row_length = self.row_length // 4 or 1 if self.is_gated else length

    def warm_up(self, seeds: list[int], contents: list) -> None:
        """The candidate's first row. One that gives its outputs in memory of its own, again and again, is right call by
        call and not in a row: then a row is one call."""
        bench = self.bench
        seconds = min(self.left(), self.first_call_seconds)
        bench.make_room()
        seed = self.row_seed()
        try:
            bench.row(self.process, self.row_length, seconds, contents[:self.row_length], self.is_gated, seed)
        except Gateless:
            self.leave_gate()
            return self.warm_up(seeds, contents)
        if self.row_length == 1 or self.count_bad(bench.draw(seeds[:self.row_length]), bench.outputs, seed) == 0:
            return
        # Of a whole call much could be done in what is free of a row's other parts.
        self.row_length, self.is_strict = 1, True
        self.learn_costs(contents, max(self.left(), BASELINE_SECONDS))
        try:
            bench.row(self.process, 1, seconds, contents[:1], self.is_gated, seed)
        except Gateless:
            self.leave_gate()

    def leave_gate(self) -> None:
        """From now on calls are timed with their launches. Raises Fault."""
        self.use_clock(False)
        self.learn_costs(self.bench.draw([self.number("warm", i) for i in range(self.row_length)]),
                         max(self.left(), BASELINE_SECONDS))

    def use_clock(self, is_gated: bool) -> None:
        self.is_gated, self.watch, self.rows, self.long_rows = is_gated, Watch(), {}, [0, 0]
        self.intercept, self.looks = Intercept(), None

    @property
    def clock(self) -> str:
        return "device" if self.is_gated else "call"

    def other_clock(self) -> Optional[dict[str, Any]]:
        """Seconds a call by the clock that is not paid, of a few pairs; nothing where it cannot be had. Raises Fault."""
        if self.bench.device != "cuda" or not self.row_length or self.bench.is_random:
            return None
        self.kind = OWN
        self.use_clock(not self.is_gated)
        wanted, length = self.clock, self.row_length
        contents = self.bench.draw([self.number("other", i) for i in range(length)])
        pairs = []
        try:
            self.learn_costs(contents, max(self.left(), BASELINE_SECONDS), OTHER_ROWS)
            while self.clock == wanted and len(pairs) <= OTHER_PAIRS:
                pairs.append(self.undisturbed_pair(len(pairs) % 2 == 0))
        except Gateless:
            return None
        except Fault as e:
            if e.category != "timed_out":  # there is a verdict already; it took so long
                raise
            return None
        if self.clock != wanted:
            return None
        # Other programs only ever make a row longer; here are few.
        reference, candidate = (sorted(x)[len(x) // 4] for x in zip(*pairs[1:]))
        fixed, _ = self.fixed()
        return {"clock": wanted, "reference": without(fixed, reference), "candidate": without(fixed, candidate)}

    def next_kind(self) -> str:
        """Of contents. The plan is a matter of the secret, so that a replay has the same."""
        if self.looks is not None and self.looks.doubted:
            return self.looks.doubted[0]
        if self.plan is None:
            self.plan = plan(self.kinds, random.Random(self.number("kinds", 0)))
        return next(self.plan)

    def block(self, kind: str = "") -> dict[str, Any]:
        """Two pairs of rows, one in either order; which comes first nobody can know. Both have contents of one kind, that is
        asked for or comes next in the plan. Seconds a call, of which `fixed` are no call's in any row until now, give or take
        `fixed_error`."""
        self.seal()
        if not self.row_length:
            self.prepare_timing()
        self.kind = kind or self.next_kind()
        reference_first = os.urandom(1)[0] % 2 == 0
        pairs: list[tuple[float, float]] = []

        def take() -> list[list[float]]:
            mark = self.watch.mark()
            try:
                pairs[:] = self.undisturbed_pair(reference_first), self.undisturbed_pair(not reference_first)
                self.look_at_kinds()
            except Gateless:  # both pairs of a block are timed by one clock
                self.leave_gate()
                return take()
            return self.watch.flushes(mark)

        self.quietly(take)
        if (seconds := self.watch.long_before_candidate(self.bench.longest_flush())) is not None:
            self.background_work(self.long_flush(seconds, "before the candidate's rows alone"))
        for rule, evidence in self.watch.findings():
            self.find(rule, "critical", evidence)
        if fetching := self.watch.fetching():
            self.find("outputs_out_of_reach", "warning", "the outputs cannot be read where they lie: their memory is freed in "
                      "between, or not of cudaMalloc. What it takes to fetch them counts as the candidate's time, "
                      f"{fetching * 1e3:.3f} ms a row")
        if self.held and self.process is not None and not self.core.has(self.process):
            self.find("left_its_core", "critical", "the candidate left the core on which it and the baseline take turns")
        fixed, error = self.fixed()
        return {"reference": [x[0] for x in pairs], "candidate": [x[1] for x in pairs], "calls": 2 * self.row_length,
                "fixed": fixed, "fixed_error": error,
                "held": self.held, "clock": self.clock, "kind": self.kind, "kinds": 1 + len(self.kinds),
                "unmet": self.looks.left}

    def look_at_kinds(self) -> None:
        """At some that no block had, the present one among them. Raises Fault and Gateless."""
        if self.looks is None:
            self.looks = Looks(self.kinds, random.Random(self.number("looks", 0)))
        self.looks.met(self.kind)
        if own := self.rows.get(OWN):
            timed = self.kind
            try:
                self.looks.look(without(self.fixed()[0], statistics.median(own[CANDIDATE])), self.seconds_alone)
            finally:
                self.kind = timed

    def seconds_alone(self, kind: str) -> float:
        """Seconds a call in a row of the candidate on contents of a kind; checked. Raises Fault and Gateless."""
        self.kind, count = kind, self.row_length

        def row() -> float:
            seeds = [self.number("inputs", self.timed + i) for i in range(count)]
            self.timed += count
            row, check = self.candidate_row(seeds)
            check()
            return without(self.fixed()[0], self.watch.candidate_seconds(row, self.bench.free) / count)

        return self.again_where_it_counts_for_nothing(row)

    def fixed(self) -> tuple[float, float]:
        """Seconds a call that are none's, and their standard error."""
        fixed, error = self.intercept.seconds(self.row_length, self.bench.free.fixed, self.bench.free.most_fixed)
        return fixed / self.row_length, error / self.row_length

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
        """One row of each, either on contents that nobody has seen before. What comes before a row changes what a short call
        takes by some percent, so it is the same for both, as often the other's row as an audit: outputs of the first are
        checked after the second, unless they are too large to be put aside; calls are long then."""
        count, free, on_gpu = self.row_length, self.bench.free, self.bench.device == "cuda"
        others, seeds = ([self.number("inputs", self.timed + k * count + i) for i in range(count)] for k in range(2))
        self.timed += 2 * count
        short = short_length(count) if on_gpu and self.kind == OWN else 0
        if reference_first:
            reference = self.baseline_row(others)
        elif short:
            self.short_row(short)
        candidate, check = self.candidate_row(seeds)
        if not self.bench.is_aside:
            check()
            check = None
        if not reference_first:
            reference = self.baseline_row(others)
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

    def candidate_row(self, seeds: list[int]) -> tuple[Row, Callable[[], None]]:
        """A row, and what checks its outputs."""
        bench, count = self.bench, self.row_length
        known = self.rows.get(self.kind)
        most = 100 * statistics.median(known[0]) * count if known else self.first_call_seconds
        contents, seed = self.prepare_row(self.process, seeds), self.row_seed()
        row = bench.row(self.process, count, min(self.left(), CALL_SECONDS + most), contents, self.is_gated, seed)
        if bench.gives_inputs:
            self.find("output_is_input", "critical", "an output lies in the memory of the inputs; the problem's own model writes a new tensor")
        self.blame_for_inputs(bench.changed_inputs)
        self.watch.rows[CANDIDATE].append(row)
        return row, functools.partial(self.audit, contents, bench.outputs, bench.samples, seed)

    def baseline_row(self, seeds: list[int]) -> Row:
        seconds = max(self.left(), BASELINE_SECONDS)  # what is short of time here is the candidate's evaluation
        contents = self.prepare_row(self.bench.baseline, seeds)
        try:
            row = self.bench.row(self.bench.baseline, len(seeds), seconds, contents, self.is_gated, self.row_seed())
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        if self.bench.changed_inputs and self.bench.shares_arena and not self.bench.changes_inputs:
            self.background_work("inputs of the problem's own model were changed while it ran")  # who else has them?
        return row

    def prepare_row(self, process: Process, seeds: list[int]) -> list:
        """Returns the contents for the row, which the process does not see yet."""
        self.bench.make_room()  # now, for what is given back is wiped while the GPU does other things
        contents = self.bench.draw(seeds, self.kind)
        process.arena.move()
        process.arena.poison(len(seeds))
        return contents

    def fault_of_baseline(self, e: Fault) -> Fault:
        """That the baseline failed is the problem's fault or ours, unless it works without the candidate: see blame.py."""
        self.bench.close_baseline()
        return self.bench.blame_problem(e)

    def quietly(self, work: Callable[[], Iterable[list[float]]]) -> None:
        """Does work which returns the seconds of flushes, of one or more kinds, again where those of a kind say that somebody
        had the GPU. If it recurs, or goes on until the candidate is ended, and not without it, it was the candidate; else
        nobody can be timed now. Raises Fault."""
        longest = self.bench.longest_flush()
        for _ in range(RETAKES):
            started = time.monotonic()
            usual = max(map(statistics.median, work()))
            if usual <= longest:
                return
            if not self.bench.flushes_settle():
                break
            if self.deadline - time.monotonic() < 2 * (time.monotonic() - started) + ALONE_SECONDS:
                raise Fault("infrastructure", "gpu_contended", "somebody used the GPU until there was no time left")
        is_there = self.process is not None
        if is_there:
            self.process.close()
            self.process = None
        if not is_there or not self.bench.flushes_settle() or not self.is_quiet_alone():
            raise Fault("infrastructure", "gpu_disturbed", "somebody else uses the GPU, also without the candidate")
        self.background_work(self.long_flush(usual, "until the candidate was ended"))

    def is_quiet_alone(self) -> bool:
        """Whether rows of the baseline find the GPU at rest for a while, now that there is no candidate."""
        bench = self.bench
        until = time.monotonic() + ALONE_SECONDS
        index = 0
        while time.monotonic() < until:
            contents = bench.draw([self.number("alone", index + i) for i in range(self.row_length)])
            index += self.row_length
            try:
                flushes = bench.learn_costs(bench.baseline, self.row_length, BASELINE_SECONDS, contents)
            except Fault:
                return False
            if max(flushes) > bench.longest_flush():
                return False
        return True

    def long_flush(self, seconds: float, when: str) -> str:
        return (f"a flush of the cache before calls took {seconds * 1e3:.3f} ms instead of "
                f"{self.bench.usual_flush * 1e3:.3f} ms, {when}")

    def background_work(self, evidence: str) -> None:
        """Raises Fault, the candidate's."""
        self.find("background_work", "critical", evidence)
        raise Fault("candidate", "integrity", evidence)

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
        problem, rules = self.bench.problem, self.rules_when_timed(self.kind)
        if seed:
            seed_everything(seed)
        return compare.count_bad([x for drawn, one in zip(contents, outputs)
                                  for x in zip(one.outputs, problem.run(drawn), rules)])

    def is_right_untimed(self) -> bool:
        """Whether it is right on contents of the present kind where nobody times it. Raises Fault."""
        raise NotImplementedError

    def row_seed(self) -> int:
        """That a row begins with, where the model draws random numbers; else 0."""
        return self.number("generators", self.timed) or 1 if self.bench.is_random else 0
