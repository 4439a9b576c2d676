"""One candidate under judgement: correctness first, then rows against the clock, every output checked."""

import functools
import hashlib
import math
import os
import statistics
import time
from collections import Counter
from typing import Any, Callable, Iterable, Optional

import torch

from kernelmill_torch import compare
from kernelmill_torch.bench import Bench, has_changed
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.candidate import fingerprints
from kernelmill_torch.cores import Core
from kernelmill_torch.problem import Truth
from kernelmill_torch.problem_check import BLIND_DRAWS, blind_answers
from kernelmill_torch.processes import Fault, Pool, Process, Row
from kernelmill_torch.watch import CANDIDATE, REFERENCE, Watch

TRIALS = {"honest": 2, "kernelbench": 5}
LARGE = 1 << 30  # bytes of one set of buffers
CALL_SECONDS = 5.0
BASELINE_SECONDS = 20.0
RETAKES = 3
DISTURBED = 1.15
ALONE_SECONDS = 1.0  # in which who uses the GPU now and then would be seen
FIRST_TIMED = 1000  # numbers of contents below are those of trials


class Judgement:
    """REQUIRES: nobody else uses the bench meanwhile."""

    def __init__(self, bench: Bench, pool: Pool, core: Optional[Core], options: dict[str, Any], compiles: bool = False):
        self.bench, self.pool, self.core = bench, pool, core
        self.held = False  # on that core
        self.first_call_seconds = first_call_seconds(bench.device, compiles)
        self.mode = options.get("mode") or "honest"
        self.float32 = "tf32" if options.get("float32") == "tf32" else "fp32"
        self.deadline = time.monotonic() + float(options["seconds"])
        self.secret = bytes.fromhex(options.get("seed") or "")
        self.replays = bool(self.secret)
        self.process: Optional[Process] = None
        self.same_parameters = False  # as the problem's, as the candidate says, which it can only lose by
        self.trials: list[dict[str, Any]] = []
        self.findings: list[dict[str, str]] = []  # not handed over yet
        self.rules_found: set[str] = set()
        self.spans: list[tuple[str, float]] = []
        self.mark = time.monotonic()
        self.timed = FIRST_TIMED
        self.rules: list[compare.Rule] = []  # of timed outputs
        self.latest_rules: list[compare.Rule] = []  # of the latest trial
        self.row_length = 0
        self.watch = Watch()
        # Draws places to look at; nothing else draws from it.
        self.places = torch.Generator(device=bench.device)
        self.places.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        self.rows: tuple[list[float], list[float]] = ([], [])  # seconds a call: reference, candidate

    # -- small things -----------------------------------------------------------------------------

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.spans.append((name, now - self.mark))
        self.mark = now

    def left(self) -> float:
        """Seconds until the deadline. Raises Fault when there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Fault("candidate", "timed_out", "the candidate used up the time of its evaluation")
        return left

    def number(self, what: str, index: int) -> int:
        """A secret seed of torch's generators."""
        digest = hashlib.sha256(self.secret + f"{what}:{index}".encode()).digest()
        return int.from_bytes(digest[:8], "little") >> 1

    def find(self, rule: str, severity: str, evidence: str) -> None:
        if rule not in self.rules_found:  # once each
            self.rules_found.add(rule)
            self.findings.append({"rule": rule, "severity": severity, "evidence": evidence})

    # -- correctness ------------------------------------------------------------------------------

    def load(self, artifact: int) -> None:
        """The module first, then the secret: nothing that it made at import can know what comes."""
        self.artifact = artifact
        self.process = self.pool.take("the candidate")
        self.lap("process")
        self.process.ask({"op": "load", "class": "ModelNew"}, self.left(), (artifact,))
        self.lap("load")
        if not self.secret:
            self.secret = os.urandom(32)
        # One set of parameters for all candidates of a baseline, which is built once; a replay has its own.
        if self.bench.baseline_seed is None or self.replays:
            self.bench.use_parameters(self.number("parameters", 0))

    def build(self, place: str) -> None:
        """The model with its parameters, made in a place."""
        seed = self.bench.baseline_seed
        self.bench.problem.build(seed, place)
        said = self.bench.attach(self.process, "ModelNew", seed, place, self.left())
        missing = Counter(fingerprints(self.bench.problem.models[self.bench.problem.dtype])) - Counter(said)
        self.same_parameters = not missing
        self.lap("build")

    def judge_correctness(self) -> bool:
        """Builds the model and runs the trials; False when one is wrong.

        Parameters are made on the device at first. A module that makes its own on the CPU has other numbers then, as it
        would not have with the benchmark: so what is wrong is tried once more with all of them made on the CPU, unless it
        says that it has the problem's numbers."""
        place = self.bench.place
        refusal: Optional[Fault] = None
        right = False
        try:
            self.build(place)
            right = self.run_trials()
        except Fault as e:
            if e.category != "init_error":
                raise
            refusal = e
        if right:
            return True
        if place == "cpu" or self.same_parameters or not self.bench.has_parameters():
            if refusal is not None:
                raise refusal
            return False
        self.trials = []
        self.findings = []
        self.rules_found.clear()
        self.process.close()
        self.process = None
        self.load(self.artifact)
        self.build("cpu")
        return self.run_trials()

    def run_trials(self) -> bool:
        count = TRIALS[self.mode]
        if self.mode == "honest" and self.bench.layout.set_bytes > LARGE:
            count = 1  # of large problems the timed calls, each checked in full, are trials enough
        for index in range(count):
            if not self.trial(f"trial {index + 1}", index, False):
                return False
        if self.mode == "honest" and self.bench.problem.can_be_signed() and not self.bench.is_random:
            if not self.trial("hidden: other signs", count, True):
                return False
        return True

    def trial(self, name: str, index: int, signed: bool) -> bool:
        """One call on fresh inputs, compared element by element with the truth."""
        bench = self.bench
        inputs = self.number("inputs", index)
        seed = self.number("generators", index)
        if signed and not self.is_defined(inputs):
            return True
        bench.fill([bench.problem.draw(inputs, signed)])
        bench.poison(1)
        bench.synchronize()
        bench.make_room()
        self.process.ask({"op": "seed", "seed": seed}, self.left())
        self.process.row(1, min(self.left(), self.first_call_seconds))
        sample = bench.sample(bench.sets[:1], self.places)
        drawn = bench.problem.draw(inputs, signed)
        truth = bench.problem.truth(drawn, seed)
        rules = self.latest_rules = self.rules_for(truth)
        self.blame_for_inputs(bench.find_changed([drawn]))
        difference = self.difference(0, truth, rules)
        self.check_late(sample, bench.sets[:1])
        self.trials.append({"name": name, "hidden": signed, "max_error": finite(difference.max_error),
                            "bound": finite(difference.bound),
                            "bad": difference.bad, "first_bad": difference.first_bad, "pass": difference.bad == 0,
                            "distribution": "half of the signs turned" if signed else "the problem's own"})
        if not signed:
            self.rules = self.rules_for(truth, timed=True)
            self.look_for_degeneracy(truth)
        return difference.bad == 0

    def look_for_degeneracy(self, truth: Truth) -> None:
        """Whether an answer that knows nothing of the inputs would have passed: then no verdict can be had, and in
        honest mode none is paid. Found out once for each problem."""
        known = self.bench.blind.get(self.mode)
        if known is None:
            answers = {"zeros": [None for _ in truth.want], "the answer to other inputs": list(truth.want)}
            seeds = [self.number("blind", i) for i in range(BLIND_DRAWS)]
            found = blind_answers(self.bench, answers, self.rules, seeds)
            known = self.bench.blind[self.mode] = found[0] if found else ""
        if known:
            self.find("degenerate_problem", "critical" if self.mode == "honest" else "warning",
                      f"{known} would have passed: this problem cannot tell right from wrong; see `kernelmill task check`")

    def is_defined(self, inputs: int) -> bool:
        """Whether the problem has a finite answer for signed inputs where it has one for its own."""
        problem = self.bench.problem
        try:
            return all(bool(torch.isfinite(x).all()) for x in problem.run(problem.draw(inputs, True))
                       if x.is_floating_point())
        except (RuntimeError, ValueError):
            return False

    def rules_for(self, truth: Truth, timed: bool = False) -> list[compare.Rule]:
        if self.mode == "kernelbench":
            return compare.benchmark_rules(len(truth.want), self.bench.problem.dtype)
        return compare.honest_rules(truth, self.bench.problem.dtype, self.float32, timed)

    def difference(self, index: int, truth: Truth, rules: list[compare.Rule]) -> compare.Difference:
        """The outputs of one set against the truth."""
        result = compare.Difference()
        outputs = self.bench.sets[index].outputs
        for i, (got, want, rule) in enumerate(zip(outputs, truth.want, rules)):
            name = f"output{i}" if len(outputs) > 1 else "output"
            bad, exceeding = compare.judge(got, want, rule)
            one = compare.explain(got, want, rule, name) if bad else compare.Difference(
                0, exceeding * rule.absolute, rule.absolute, "", exceeding)
            result = result.worse_of(one)
        return result

    def blame_for_inputs(self, changed: list[int]) -> None:
        """Inputs at these positions of a set must have stayed what was put there."""
        for i in changed:
            self.find("input_overwrite", "critical", f"input {i} was changed by the candidate")

    def check_late(self, sample: list, sets: list[BufferSet]) -> None:
        """What was sampled when a row was done must not have changed since."""
        if has_changed(sample, sets):
            self.find("late_write", "critical", "outputs changed after the candidate said that it was done")

    def judge_determinism(self) -> None:
        """The same inputs once more."""
        before = [x.clone() for x in self.bench.sets[0].outputs]
        self.bench.poison(1)
        self.bench.synchronize()
        self.process.row(1, min(self.left(), self.first_call_seconds))
        after = self.bench.sets[0].outputs
        if self.bench.is_random or all(compare.same_bytes(a, b) for a, b in zip(before, after)):
            return
        # Sums in no fixed order, as the framework's own convolutions have them, stay within the bound on either side.
        apart = [compare.Rule(2 * x.absolute, 2 * x.relative) for x in self.latest_rules]
        if compare.count_bad(list(zip(after, before, apart))):
            self.find("not_deterministic", "warning", "the same inputs gave different results")
        else:
            self.find("bits_vary", "warning", "the same inputs gave other bits, within the bound")

    # -- time ---------------------------------------------------------------------------------------

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
            self.background_work(seconds, "before the candidate's rows alone")
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
        """One row of each. One that was not to be had, for the candidate's memory moved, is taken again."""
        try:
            return self.rows_of_pair(reference_first)
        except MemoryMoved:
            return self.rows_of_pair(reference_first)

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
        sample = None if bench.is_aside else bench.sample(bench.outputs, self.places)
        return row, functools.partial(self.audit, contents, bench.outputs, sample)

    def baseline_row(self, seeds: list[int]) -> Row:
        seconds = max(self.left(), BASELINE_SECONDS)  # what is short of time here is the candidate's evaluation
        contents = self.prepare_row(self.bench.baseline, seeds)
        try:
            row = self.bench.row(self.bench.baseline, self.row_length, seconds, contents)
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        self.watch.rows[REFERENCE].append(row)
        return row

    def prepare_row(self, process: Process, seeds: list[int]) -> list:
        """Returns the contents for the row, which the process does not see yet."""
        process.rest()
        self.bench.make_room()  # now, for what is given back is wiped while the GPU does other things
        contents = self.bench.draw(seeds)
        self.bench.poison(len(seeds))
        return contents

    def fault_of_baseline(self, e: Fault) -> Fault:
        """Whose fault it is that the baseline failed: the problem's only if it fails without the candidate too."""
        bench = self.bench
        bench.close_baseline()
        if e.cls != "candidate" or e.category == "out_of_memory" or self.process is None:
            return bench.blame_problem(e)
        self.process.close()
        self.process = None
        try:
            alone = bench.start_baseline(self.pool, bench.baseline_seed, BASELINE_SECONDS)
            bench.row(alone, 1, BASELINE_SECONDS, bench.draw([self.number("alone", 0)]))
        except Fault as again:
            bench.close_baseline()
            return bench.blame_problem(again)
        return Fault("infrastructure", "baseline_disturbed", "the problem's own model failed beside the candidate, and "
                     f"works without it: {e.message[:300]}")

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
                raise Fault("infrastructure", "gpu_disturbed", "somebody used the GPU until there was no time left")
        self.process.close()
        self.process = None
        if not self.bench.flushes_settle() or not self.is_quiet_alone():
            raise Fault("infrastructure", "gpu_disturbed", "somebody else uses the GPU, also without the candidate")
        self.background_work(usual, "until the candidate was ended")

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

    def background_work(self, seconds: float, when: str) -> None:
        """Raises Fault, the candidate's."""
        evidence = (f"a flush of the cache before calls took {seconds * 1e3:.3f} ms instead of "
                    f"{self.bench.usual_flush * 1e3:.3f} ms, {when}")
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
        reach = self.process.reach
        if reach.may_be_stale():
            reach.is_fleeting = True  # from now on
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


class MemoryMoved(Exception):
    """Outputs were read where the process had such once, and were not right."""


def first_call_seconds(device: str, compiles: bool) -> float:
    """How long a first call may take; longer where the module may compile and tune for a GPU in it."""
    return 45.0 if compiles and device == "cuda" else 15.0


def finite(x: float) -> Optional[float]:
    """JSON has no infinity: None stands for it, and for NaN."""
    return x if math.isfinite(x) else None
