"""One candidate under judgement: correctness first, then time."""

import math
import os
import random
import time
from collections import Counter
from dataclasses import replace
from typing import Any, Optional

import torch

from kernelmill_torch import compare
from kernelmill_torch.bench import Bench
from kernelmill_torch.candidate import fingerprints
from kernelmill_torch.contents import KINDS, OWN, in_turn
from kernelmill_torch.faults import Fault
from kernelmill_torch.judged import SECRET_BYTES
from kernelmill_torch.problem import Truth
from kernelmill_torch.problem_check import BLIND_DRAWS, blind_answers
from kernelmill_torch.sampling import sample
from kernelmill_torch.small_scales import RELATIVE
from kernelmill_torch.timed_outputs import TimedOutputs
from kernelmill_torch.truths import LARGE

TRIALS = {"honest": 2, "suite": 3, "kernelbench": 5}
OVERTIME = 1.0  # seconds after the deadline, for which no wait for a candidate goes on
LEAST_HIDDEN = 14  # trials of other kinds, whatever they take
LEAST_OF_LARGE = 3  # of large problems
LEAST_BEFORE_BATCHES = 6  # which have all kinds, and are checked
HIDDEN_SECONDS = {"cuda": 0.3, "cpu": 2.0}  # after which there are no more


class Judgement(TimedOutputs):
    """REQUIRES: nobody else uses the bench meanwhile."""

    def __init__(self, *judged: Any, **options: Any):
        super().__init__(*judged, **options)
        self.same_parameters = False  # as the problem's, as the candidate says, which it can only lose by
        self.trials: list[dict[str, Any]] = []  # not handed over yet
        self.latest_rules: list[compare.Rule] = []  # of the latest trial

    def load(self, artifact: int) -> None:
        """The module first, then the secret: nothing that it made at import can know what comes."""
        self.artifact = artifact
        self.bench.looks_again = False
        self.process = self.pool.take("the candidate")
        self.process.until = self.deadline + OVERTIME
        self.lap("process")
        self.loaded = True
        message = {"op": "load", "class": "ModelNew", "entry": self.entry, "float32": Bench.float32}
        self.process.ask(message, self.left(), (artifact,))
        self.process.stop()  # its threads could take memory from us meanwhile, and give it back before anybody looks
        self.lap("load")
        if not self.secret:
            self.secret = os.urandom(SECRET_BYTES)
        # One set of parameters for all candidates of a baseline, which is built once; a replay has its own.
        if self.bench.baseline_seed is None or self.replays:
            self.bench.use_parameters(self.number("parameters", 0))

    def build(self, place: str) -> None:
        """The model with its parameters, made in a place."""
        seed = self.bench.baseline_seed
        self.bench.problem.build(seed, place)
        # What another candidate saw of hidden contents, or this one before, may be left in sets that no row used.
        self.bench.arena.memory.clear()
        self.bench.synchronize()
        said = self.bench.attach(self.process, self.bench.arena, "ModelNew", seed, place, self.left())
        self.process.stop()
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
        self.timed_rules.clear()
        self.waited += self.process.waited
        self.process.close()
        self.process = None
        self.load(self.artifact)
        self.build("cpu")
        return self.run_trials()

    def run_trials(self) -> bool:
        count = TRIALS[self.mode]
        if self.mode == "honest" and self.bench.layout.set_bytes > LARGE:
            count = 1  # of large problems the timed calls, each checked in full, are trials enough
        self.planned = count + sum(KINDS[x].draws for x in self.kinds)
        for index in range(count):
            if self.trial(f"trial {index + 1}", index) is False:
                return False
        return self.visible_only or self.run_hidden(count)

    def run_hidden(self, index: int) -> bool:
        """Trials of other kinds of contents: turned signs, then as many as there is time for, in an order that nobody
        knows. All kinds are timed, and checked then."""
        others = in_turn(
            [x for x in self.kinds if x != "signs" for _ in range(KINDS[x].draws)],
            random.Random(self.number("trials", 0)),
        )
        end = time.monotonic() + HIDDEN_SECONDS[self.bench.device]
        least = LEAST_HIDDEN
        if self.is_timed or self.is_variant:
            end, least = 0.0, LEAST_BEFORE_BATCHES
        if self.bench.layout.set_bytes > LARGE:
            least = LEAST_OF_LARGE
        for number, kind in enumerate([x for x in self.kinds if x == "signs"] + others):
            if number >= least and time.monotonic() > end:
                break
            if self.trial("hidden: " + KINDS[kind].words, index + number, kind) is False:
                return False
        return True

    def trial(self, name: str, index: int, kind: str = OWN) -> Optional[bool]:
        """One call on fresh inputs, compared element by element with the truth. None where a draw of another kind has no answer, with
        these parameters and numbers."""
        bench, arena = self.bench, self.bench.arena
        if kind == OWN and index == 0:
            for known in (OWN, *self.kinds):  # once for these parameters, while nothing else is held
                bench.losses(known)
        inputs = self.number("inputs", index)
        seed = self.number("generators", index)
        if kind != OWN:
            self.seal()
        arena.move()
        arena.fill([bench.problem.draw(inputs, kind)])
        arena.poison(1)
        bench.synchronize()
        bench.make_room()
        self.process.place = arena.place
        if bench.is_random:
            self.process.ask({"op": "seed", "seed": seed}, self.left())
        self.process.row(1, min(self.left(), self.first_call_seconds))
        sampled = sample(arena.sets[:1], bench.places)
        drawn = bench.problem.draw(inputs, kind)
        self.blame_for_inputs(arena.find_changed([drawn]))  # before the model itself has them
        truth = bench.problem.plain_truth(drawn, seed) if self.mode == "suite" else bench.truth(drawn, seed, kind)
        if kind != OWN and not truth.is_finite:
            self.check_late(sampled, arena.sets[:1])
            return None
        rules = self.latest_rules = self.rules_for(truth)
        outputs = arena.sets[0].outputs
        difference = self.difference(outputs, truth, rules)
        if difference.bad:
            difference = self.difference(bench.forgive(outputs, truth.want, [drawn], kind), truth, rules)
        if not difference.bad and kind == OWN:
            difference = self.by_own_size(outputs, truth, drawn) or difference
        if not difference.bad:
            self.note_share(outputs, truth.want, rules)
        self.check_late(sampled, arena.sets[:1])
        self.trials.append(
            {
                "name": name,
                "hidden": kind != OWN,
                "max_error": finite(difference.max_error),
                "bound": finite(difference.bound),
                "bad": difference.bad,
                "first_bad": difference.first_bad,
                "pass": difference.bad == 0,
                "distribution": KINDS[kind].words,
            }
        )
        self.tried.add(kind)
        del drawn  # which may be a tenth of the memory, and what follows draws more
        if kind == OWN:
            self.look_for_degeneracy(truth)
        return difference.bad == 0

    def by_own_size(self, outputs: list[torch.Tensor], truth: Truth, drawn: list[Any]) -> Optional[compare.Difference]:
        """What is wrong of outputs that the bounds of the whole let pass."""
        if not (truth.is_exact and self.asks_small_scales(drawn)):
            return None
        with self.bench.again():
            share = self.small_scales.wrong(outputs, truth.want, drawn, self.bench.problem)
        if not share:
            return None
        count = int(share * max(x.numel() for x in truth.want))
        return compare.Difference(
            count,
            share,
            0.0,
            f"{share:.1%} of an output's elements are off by more than {RELATIVE:.1g} of their own size "
            "and than arithmetic in another order explains",
            share,
        )

    def look_for_degeneracy(self, truth: Truth) -> None:
        """By the rules of a benchmark, whether an answer that knows nothing of the inputs would have passed. Found out once
        for each problem. In other modes than "kernelbench" such a problem judges no candidate; see Referee.fit_bench()."""
        bench = self.bench
        if self.mode != "kernelbench":
            return
        if bench.blind is None:
            answers = {"zeros": [None for _ in truth.want], "the answer to other inputs": list(truth.want)}
            seeds = [self.number("blind", i) for i in range(BLIND_DRAWS)]
            found = blind_answers(bench, answers, self.rules_when_timed, seeds)
            bench.blind = found[0] if found else ""
        if bench.blind:
            self.find(
                "degenerate_problem",
                "warning",
                f"{bench.blind} would have passed: this problem cannot tell right from wrong; see `kernelmill task check`",
            )

    @staticmethod
    def difference(outputs: list[torch.Tensor], truth: Truth, rules: list[compare.Rule]) -> compare.Difference:
        """The outputs of a trial against the truth."""
        result = compare.Difference()
        for i, (got, want, rule) in enumerate(zip(outputs, truth.want, rules)):
            name = f"output{i}" if len(outputs) > 1 else "output"
            bad, exceeding = compare.judge(got, want, rule)
            one = (
                compare.explain(got, want, rule, name)
                if bad
                else compare.Difference(0, exceeding * rule.absolute, rule.absolute, "", exceeding)
            )
            result = result.worse_of(one)
        return result

    def judge_determinism(self) -> None:
        """The same inputs again, as often as is asked for."""
        outputs = self.bench.arena.sets[0].outputs
        before = [x.clone() for x in outputs]
        # Sums in no fixed order, as the framework's own convolutions have them, stay within the bound on either side.
        apart = [replace(x, absolute=2 * x.absolute, relative=2 * x.relative) for x in self.latest_rules]
        varies = False
        for _ in range(1, self.determinism_runs):
            self.bench.arena.poison(1)
            self.bench.synchronize()
            self.process.row(1, min(self.left(), self.first_call_seconds))
            if self.bench.is_random or all(compare.same_bytes(a, b) for a, b in zip(before, outputs)):
                continue
            varies = True
            if compare.count_bad(list(zip(outputs, before, apart))):
                return self.find("not_deterministic", "warning", "the same inputs gave different results")
        if varies:
            self.find("bits_vary", "warning", "the same inputs gave other bits, within the bound")


def finite(x: float) -> Optional[float]:
    """JSON has no infinity: None stands for it, and for NaN."""
    return x if math.isfinite(x) else None
