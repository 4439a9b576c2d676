"""A candidate against the clock: rows of calls, beside those of the problem's own model, every output checked."""

import functools
import os
import statistics
import time
from typing import Any, Callable, Iterable, Optional

from kernelmill_torch import compare
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.judged import Judged
from kernelmill_torch.processes import Fault, Process, Row
from kernelmill_torch.watch import CANDIDATE, REFERENCE, Watch

CALL_SECONDS = 5.0
BASELINE_SECONDS = 20.0
RETAKES = 3
DISTURBED = 1.15
ALONE_SECONDS = 1.0  # in which who uses the GPU now and then would be seen
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
        self.watch = Watch()
        self.rows: tuple[list[float], list[float]] = ([], [])  # seconds a call: reference, candidate

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
            length = bench.calibrate(baseline, seconds, contents)
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        self.row_length = length if self.mode == "honest" else 1
        self.learn_costs(contents, seconds)
        self.warm_up(seeds, contents)
        self.lap("baseline")

    def learn_costs(self, contents: list, seconds: float, strict: bool = False) -> None:
        """What is learned while somebody else uses the GPU would be free for the candidate. Raises Fault."""
        def learn() -> tuple[list[float]]:
            try:
                return (self.bench.learn_costs(self.bench.baseline, self.row_length, seconds, contents, strict),)
            except Fault as e:
                raise self.fault_of_baseline(e) from None

        self.quietly(learn)

    def warm_up(self, seeds: list[int], contents: list) -> None:
        """The candidate's first row. One that gives its outputs in memory of its own, again and again, is right call by
        call and not in a row: then a row is one call."""
        bench = self.bench
        seconds = min(self.left(), self.first_call_seconds)
        bench.make_room()
        bench.row(self.process, self.row_length, seconds, contents[:self.row_length])
        if self.row_length == 1 or self.count_bad(bench.draw(seeds[:self.row_length]), bench.outputs) == 0:
            return
        self.row_length = 1
        # Of a whole call much could be done in what is free of a row's other parts.
        self.learn_costs(contents, max(self.left(), BASELINE_SECONDS), strict=True)
        bench.row(self.process, 1, seconds, contents[:1])

    def block(self) -> dict[str, Any]:
        """Two pairs of rows, one in either order; which comes first nobody can know. Seconds a call."""
        self.seal()
        if not self.row_length:
            self.prepare_timing()
        reference_first = os.urandom(1)[0] % 2 == 0
        pairs: list[tuple[float, float]] = []

        def take() -> list[list[float]]:
            mark = self.watch.mark()
            pairs[:] = self.undisturbed_pair(reference_first), self.undisturbed_pair(not reference_first)
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
        return {"reference": [x[0] for x in pairs], "candidate": [x[1] for x in pairs], "calls": 2 * self.row_length,
                "held": self.held}

    def undisturbed_pair(self, reference_first: bool) -> tuple[float, float]:
        """A pair of which neither row is plainly longer than others of its kind, nor the flushes before them: something
        else had the GPU or the core then. It is taken again, for either alike; nothing is ever subtracted. Where it is
        disturbed each time, the shortest row of each kind counts."""
        takes = []
        for _ in range(RETAKES):
            mark = self.watch.mark()
            pair = self.pair(reference_first)
            disturbed = max(sum(self.watch.flushes(mark), [])) > self.bench.longest_flush()
            for past, seconds in zip(self.rows, pair):
                past.append(seconds)
            if not disturbed and all(x <= DISTURBED * statistics.median(past) for past, x in zip(self.rows, pair)):
                return pair
            takes.append(pair)
        return min(x[0] for x in takes), min(x[1] for x in takes)

    def pair(self, reference_first: bool) -> tuple[float, float]:
        """One row of each, again where the candidate's memory has moved."""
        while True:
            try:
                return self.rows_of_pair(reference_first)
            except MemoryMoved:  # twice at most
                pass

    def rows_of_pair(self, reference_first: bool) -> tuple[float, float]:
        """One row of each, either on contents that nobody has seen before. What comes before a row changes what a short call
        takes by some percent, so it is the same for both, as often the other's row as an audit: outputs of the first are
        checked after the second, unless they are too large to be put aside; calls are long then."""
        count = self.row_length
        others, seeds = ([self.number("inputs", self.timed + k * count + i) for i in range(count)] for k in range(2))
        self.timed += 2 * count
        if reference_first:
            reference = self.baseline_row(others)
            candidate, check = self.candidate_row(seeds)
        else:
            candidate, check = self.candidate_row(seeds)
            if not self.bench.is_aside:
                check()
                check = None
            reference = self.baseline_row(others)
        if check:
            check()
        free, on_gpu = self.bench.free, self.bench.device == "cuda"
        return (self.watch.reference_seconds(reference, free, on_gpu) / count,
                self.watch.candidate_seconds(candidate, free) / count)

    def candidate_row(self, seeds: list[int]) -> tuple[Row, Callable[[], None]]:
        """A row, and what checks its outputs."""
        bench, count = self.bench, self.row_length
        most = 100 * statistics.median(self.rows[0]) * count if self.rows[0] else self.first_call_seconds
        contents = self.prepare_row(self.process, seeds)
        row = bench.row(self.process, count, min(self.left(), CALL_SECONDS + most), contents)
        self.blame_for_inputs(bench.changed_inputs)
        self.watch.rows[CANDIDATE].append(row)
        return row, functools.partial(self.audit, contents, bench.outputs, bench.samples)

    def baseline_row(self, seeds: list[int]) -> Row:
        seconds = max(self.left(), BASELINE_SECONDS)  # what is short of time here is the candidate's evaluation
        contents = self.prepare_row(self.bench.baseline, seeds)
        try:
            row = self.bench.row(self.bench.baseline, self.row_length, seconds, contents)
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        if self.bench.changed_inputs and self.bench.shares_arena and not self.bench.changes_inputs:
            self.background_work("inputs of the problem's own model were changed while it ran")  # who else has them?
        self.watch.rows[REFERENCE].append(row)
        return row

    def prepare_row(self, process: Process, seeds: list[int]) -> list:
        """Returns the contents for the row, which the process does not see yet."""
        self.bench.make_room()  # now, for what is given back is wiped while the GPU does other things
        contents = self.bench.draw(seeds)
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
        self.process.close()
        self.process = None
        if not self.bench.flushes_settle() or not self.is_quiet_alone():
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

    def audit(self, contents: list, outputs: list[BufferSet], sample: Optional[list]) -> None:
        """Every output of a row; which are not what was sampled when it was done if they were written later. Raises Fault when
        one is wrong, MemoryMoved when it may have been right elsewhere."""
        bad = self.count_bad(contents, outputs)
        if sample is not None:
            self.check_late(sample, outputs)
        if not bad:
            return
        if self.process.reach.moved():
            raise MemoryMoved
        evidence = f"right in all trials, but wrong when it was timed, in {bad:.0f} elements"
        self.find("wrong_when_timed", "critical", evidence)
        raise Fault("candidate", "wrong_result", evidence)

    def count_bad(self, contents: list, outputs: list[BufferSet]) -> float:
        """Wrong elements in the outputs of a row. A model may change the contents."""
        problem = self.bench.problem
        if self.bench.is_random:
            return 0.0
        return compare.count_bad([x for drawn, one in zip(contents, outputs)
                                  for x in zip(one.outputs, problem.run(drawn), self.rules)])
