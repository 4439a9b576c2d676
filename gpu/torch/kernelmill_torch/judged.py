"""What is judged: a candidate, its process, what was found of it."""

import hashlib
import time
from typing import Any, Optional, Sequence

import torch

from kernelmill_torch import compare
from kernelmill_torch.admission import SMALL_OUTPUT
from kernelmill_torch.bench import Bench
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.contents import OWN
from kernelmill_torch.faults import Fault
from kernelmill_torch.pool import Pool
from kernelmill_torch.problem import Truth
from kernelmill_torch.processes import Process
from kernelmill_torch.sampling import Sampled, has_changed
from kernelmill_torch.small_scales import SmallScales

LEAST_WAITED = 0.5  # of the time of an evaluation, before that it was too short is the candidate's doing
SECRET_BYTES = 32


class Judged:
    def __init__(self, bench: Bench, pool: Pool, options: dict[str, Any], compiles: bool = False):
        self.bench, self.pool = bench, pool
        self.first_call_seconds = first_call_seconds(bench.device, compiles)
        self.mode = options.get("mode") or "honest"
        self.tolerance: dict[str, Any] = options.get("tolerance") or {}  # of the mode "suite"
        self.entry: str = options.get("entry") or ""  # see entry.py
        self.is_timed = bool(options.get("timed"))
        self.visible_only = bool(options.get("visible_only"))
        self.determinism_runs = int(options.get("determinism_runs") or 2)  # on the same inputs
        self.is_variant = bool(options.get("constants"))  # of a problem that has been judged at its own shape
        self.float32 = "tf32" if options.get("float32") == "tf32" else "fp32"
        self.seconds = float(options["seconds"])
        self.deadline = time.monotonic() + self.seconds
        self.waited = 0.0  # seconds, for processes of the candidate that are no more
        self.secret = bytes.fromhex(options.get("seed") or "")
        self.replays = bool(options.get("replays", self.secret))
        self.process: Optional[Process] = None
        self.ended: Optional[Process] = None  # its process that was put away
        self.loaded = False  # its own code has been near
        self.sealed = False  # a hidden trial or a timed batch has begun
        self.words = ""  # printed until then
        self.planned = 0  # trials of the problem, also those that do not come to run
        self.findings: list[dict[str, str]] = []  # not handed over yet
        self.rules_found: set[str] = set()
        self.spans: list[tuple[str, float]] = []
        self.mark = time.monotonic()
        self.kind = OWN  # of contents, of what is being timed
        self.tried: set[str] = {OWN}  # kinds that it was right on in trials
        self.timed_rules: dict[str, list[compare.Rule]] = {}  # of timed outputs, by kind
        self.small_scales = SmallScales()
        self.share_off = 0.0  # of an output's elements, that a suite's rule has let pass

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.spans.append((name, now - self.mark))
        self.mark = now

    def left(self) -> float:
        """Seconds until the deadline. Raises Fault when there are none, which is the candidate's where at least half of the time
        was spent waiting for it."""
        left = self.deadline - time.monotonic()
        if left > 0:
            return left
        waited = self.waited + (self.process.waited if self.process is not None else 0.0)
        if waited >= LEAST_WAITED * self.seconds:
            raise Fault("candidate", "timed_out", "the candidate used up the time of its evaluation")
        raise Fault(
            "infrastructure",
            "time_spent",
            f"{self.seconds:.0f} s were too few to judge the candidate, for which "
            f"{waited:.0f} of them were spent: the machine is busy, or the problem too large for it",
        )

    @property
    def is_out_of_time(self) -> bool:
        return time.monotonic() >= self.deadline

    def number(self, what: str, index: int) -> int:
        """A secret seed of torch's generators."""
        digest = hashlib.sha256(self.secret + f"{what}:{index}".encode()).digest()
        return int.from_bytes(digest[:8], "little") >> 1

    @property
    def kinds(self) -> list[str]:
        """Kinds of contents other than the problem's own that it is judged on."""
        return self.bench.admitted.others if self.mode == "honest" else []

    def rules_for(self, truth: Truth, timed: bool = False) -> list[compare.Rule]:
        if self.mode == "kernelbench":
            return compare.benchmark_rules(truth)
        if self.mode == "suite":
            return compare.suite_rules(len(truth.level), self.tolerance)
        return compare.honest_rules(truth, self.float32, timed)

    def rules_of_kind(self, kind: str) -> list[compare.Rule]:
        """For outputs of the scale that those of the kind had when they were looked at."""
        if kind not in self.timed_rules:
            self.timed_rules[kind] = self.rules_for(self.bench.losses(kind), timed=True)
        return self.timed_rules[kind]

    def rules_when_timed(
        self, kind: str, wanted: list[torch.Tensor], shifts: Sequence[float] = ()
    ) -> list[compare.Rule]:
        """For outputs of one or more draws of a kind; `shifts` as the bench has them."""
        rules = self.rules_of_kind(kind)
        rules = rules * (len(wanted) // max(1, len(rules)))
        return rules if self.mode != "honest" else compare.at_own_scale(rules, wanted, SMALL_OUTPUT, shifts)

    def note_share(self, got: list[torch.Tensor], wanted: list[torch.Tensor], rules: list[compare.Rule]) -> None:
        """Of outputs that are right by the rule of a suite: what is off may be work that was left out."""
        if self.mode == "suite":
            self.share_off = max(self.share_off, compare.share_off(zip(got, wanted, rules)))

    def asks_small_scales(self, inputs: list[Any]) -> bool:
        return self.mode == "honest" and self.float32 == "fp32" and self.bench.can_ask_small_scales(inputs)

    def find(self, rule: str, severity: str, evidence: str) -> None:
        if rule not in self.rules_found:  # once each
            self.rules_found.add(rule)
            self.findings.append({"rule": rule, "severity": severity, "evidence": evidence})

    def wrong_in_time(self, bad: float, is_tried: bool) -> Fault:
        """So many elements were wrong when it was timed. `is_tried`: it is right on such contents where no clock runs."""
        if not is_tried:
            return Fault(
                "candidate",
                "wrong_result",
                f"wrong when it was timed, on other contents of the same shapes, in {bad:.0f} elements",
                "compute the function for every value of its inputs",
            )
        evidence = f"right in all trials, but wrong when it was timed, in {bad:.0f} elements"
        self.find("wrong_when_timed", "critical", evidence)
        return Fault("candidate", "wrong_result", evidence)

    def seal(self) -> None:
        """Before a hidden trial or a timed batch: what is printed from now on is not quoted. A copy is taken because the process
        may write over what it printed before."""
        if not self.sealed and self.process is not None:
            self.words = self.process.output()
        self.sealed = True

    def put_away_into(self, ending: list[Process]) -> None:
        """Kills the process, which takes a while to end."""
        process, self.process = self.process, None
        if process is None:
            return
        if not self.sealed:
            self.words = process.output()
        process.kill()
        self.waited += process.waited
        self.ended = process
        ending.append(process)

    def blame_for_inputs(self, changed: list[int]) -> None:
        """Inputs at these positions of a set must have stayed what was put there."""
        for i in changed:
            self.find("input_overwrite", "critical", f"input {i} was changed by the candidate")

    def check_late(self, sample: Sampled, sets: list[BufferSet]) -> None:
        """What was sampled when calls were done must not have changed since."""
        if has_changed(sample, sets):
            self.find("late_write", "critical", "outputs changed after the candidate said that it was done")


def first_call_seconds(device: str, compiles: bool) -> float:
    """How long a first call may take; longer where the module may compile and tune for a GPU in it."""
    if device == "cpu":
        return 15.0
    return 45.0 if compiles else 8.0
