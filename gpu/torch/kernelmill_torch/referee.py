"""The torch referee: trusted, one per slot. It runs problems, never candidates.

Descriptor 3 is a SOCK_SEQPACKET socket to the C++ referee, 4 one to the warm process, and 5
the kernels for its GPU. Each request is one message:
  begin  {directory, precision, mutates, device facts, mode, clock, float32, language, level, seed, seconds} + the artifact: judges
         correctness
  open   {as begin, without the artifact; baseline, and the artifact of one that is a module}: makes ready what candidates are timed
         beside; which one it became, why, and how many calls a batch may have
  batch  {side, patterns, calls, number, apart}: one batch of calls, as it was seen from outside, or `spent` where the
         evaluation's time was over before it was
  warm   {calls}: the candidate's first batches
  end    {}: ends the candidate; its share of the GPU's time, what it printed
  prepare {as begin, without the artifact; variants}: whether the problem can judge at every shape of its task
  check  {directory, precision, mutates, variants}: what is wrong with a problem
What is judged at another shape than the problem's own has the `constants` of that in its requests.
Each answer has `fault` (null or class, category, message, hint) and what was found out until then."""

import argparse
import json
import os
import socket
import sys
import time
import traceback
from typing import Any, Callable, Optional

import torch

from kernelmill_torch import (
    blame,
    channel,
    compare,
    kernel_share,
    kernels,
    languages,
    native,
    problem_check,
    variants,
    weights,
)
from kernelmill_torch.artifact import read
from kernelmill_torch.baselines import EAGER, Kept, Wish
from kernelmill_torch.batches import Batches, Order
from kernelmill_torch.bench import Bench, memory_of_gpu
from kernelmill_torch.candidate import use_float32
from kernelmill_torch.contents import OWN
from kernelmill_torch.entry import name_of
from kernelmill_torch.faults import Fault, lacks_memory, let_go
from kernelmill_torch.judgement import Judgement
from kernelmill_torch.pool import Pool
from kernelmill_torch.problem import OUT_OF_MEMORY
from kernelmill_torch.processes import ENDING_SECONDS, Process
from kernelmill_torch.sameness import is_own_model
from kernelmill_torch.warm import Zygote

MOST_BENCHES = {"cuda": 16, "cpu": 4}
LEAST_FREE = 0.5  # of a GPU's memory, while several benches are kept
MOST_TOLD = 1024  # problems of which it is kept what a look at them told
SMALL_BENCH = 4 << 30  # bytes; on a CPU larger ones are not kept beside others
START_SECONDS = 180.0
CONTROL_SECONDS = 20.0
LINGERING_SECONDS = 60.0  # in which a candidate that was ended gives back what it had mapped


def fault_of(e: Exception) -> Fault:
    """What ended a judgement, as a fault."""
    if isinstance(e, Fault):
        return e
    if lacks_memory(e):
        return Fault("infrastructure", "gpu_memory", f"the referee ran out of memory: {e}")
    words = "".join(traceback.format_exception(type(e), e, e.__traceback__))[-3000:]
    return Fault("infrastructure", "python_failed", "the torch referee failed: " + words)


def outcome_of(work: Callable[[], Any]) -> tuple[Any, Optional[Exception]]:
    """What work returned, and what ended it: to be settled when it is no longer handled, for that holds what it had."""
    try:
        return work(), None
    except Exception as e:
        return None, e


def is_of_benchmark(request: dict[str, Any]) -> bool:
    """Whether a benchmark's rules say what is right."""
    return request.get("mode") in ("kernelbench", "suite")


class Referee:
    """What outlives single requests."""

    def __init__(self, lib, zygote: Zygote, device: str, pool_size: int):
        self.lib, self.zygote, self.device = lib, zygote, device
        self.pool = Pool(lib, zygote, pool_size)
        self.benches: dict[tuple[str, str], Bench] = {}  # latest last
        self.told: dict[tuple[str, str, str], dict[str, Any]] = {}  # by directory, version and precision
        self.prepared: set[str] = set()  # tasks all shapes of which can judge
        self.judgement: Optional[Judgement] = None
        self.batches: Optional[Batches] = None  # of the problem that was opened last
        self.ending: list[Process] = []  # candidates, killed
        self.crowded = False  # somebody found too little memory
        self.source = ""
        self.artifact = -1
        self.options: dict[str, Any] = {}
        self.wish = Wish()
        self.deadline = 0.0  # of the latest request to begin

    def bench(self, request: dict[str, Any]) -> Bench:
        """The bench of a request's problem; the ones that were used longest ago make room."""
        directory, version = request["directory"], variants.version_of(request)
        precision, mutates = request.get("precision") or "fp32", tuple(request.get("mutates") or ())
        constants = request.get("constants")
        found = self.benches.pop((directory, version), None)
        if found is None:
            self.await_ended()  # its memory may be needed
            told = self.told.get((directory, version, precision))
            found = Bench(self.lib, self.device, directory, precision, told, mutates, constants)
            if (
                found.was_short_of_memory and self.benches
            ):  # what is judged by must not depend on what is kept of others
                found.close()
                self.close_benches()
                found = Bench(self.lib, self.device, directory, precision, None, mutates, constants)
            self.keep_told(request, found.told())
        self.benches[directory, version] = found
        while len(self.benches) > 1 and self._crowded(found):
            self.benches.pop(next(iter(self.benches))).close()
        return found

    def use_float32(self, request: dict[str, Any]) -> None:
        """What was found out of problems holds for one arithmetic; modes of benchmarks have torch's own."""
        wanted = "" if is_of_benchmark(request) else request.get("float32") or "ieee"
        if wanted == Bench.float32:
            return
        self.close_benches()
        self.told.clear()
        self.prepared.clear()
        Bench.float32 = wanted
        use_float32(wanted)

    def fit_bench(self, request: dict[str, Any]) -> Bench:
        """The bench to judge by. Raises Fault where its problem cannot tell right from wrong: before any candidate is there, for that
        is none of its doing. KernelBench has its own verdicts, whatever they are worth."""
        bench = self.bench(request)
        if request.get("mode") == "kernelbench":
            return bench
        if request.get("mode") == "suite":
            self.expect_fit_for_suite(bench, request)
            return bench
        if bench.unfit is None:
            bench.unfit = problem_check.unfit(bench, "tf32" if request.get("float32") == "tf32" else "fp32")
            self.keep_told(request, bench.told())
        if bench.unfit:
            raise Fault(
                "configuration",
                "unfit_task",
                f"failed to judge by the problem {bench.directory}: {bench.unfit[0]}",
                "`kernelmill task check` says more",
            )
        return bench

    @staticmethod
    def expect_fit_for_suite(bench: Bench, request: dict[str, Any]) -> None:
        """Raises Fault where an answer without work would pass the suite's rule."""
        tolerance = request.get("tolerance")
        if not tolerance:  # all that is asked for is a look at the shapes
            return
        key = json.dumps(tolerance, sort_keys=True)
        if key not in bench.unfit_for_suite:
            rules = compare.suite_rules(len(bench.layout.outputs), tolerance)
            bench.unfit_for_suite[key] = problem_check.unfit_for_suite(bench, rules)
        if found := bench.unfit_for_suite[key]:
            raise Fault(
                "configuration",
                "unfit_task",
                f"failed to judge by the problem {bench.directory} and its suite's tolerance: {found[0]}",
                "judge it by other bounds: evaluation.torch_mode=honest (--torch-mode honest)",
            )

    def keep_told(self, request: dict[str, Any], told: Optional[dict[str, Any]]) -> None:
        """Without a digest nobody knows whether the files are still the same."""
        if told is None or not request.get("digest"):
            return
        self.told[request["directory"], variants.version_of(request), request.get("precision") or "fp32"] = told
        if len(self.told) > MOST_TOLD:
            del self.told[next(iter(self.told))]

    def _crowded(self, latest: Bench) -> bool:
        if len(self.benches) > MOST_BENCHES[self.device]:
            return True
        if self.device == "cpu":
            return any(x.needed > SMALL_BENCH for x in self.benches.values())
        latest.make_room()
        free, total = memory_of_gpu(self.lib)
        return free < max(LEAST_FREE * total, latest.needed)

    def close_benches(self) -> None:
        while self.benches:
            self.benches.popitem()[1].close()

    # -- requests -----------------------------------------------------------------------------------

    def open(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Raises nothing: what fails is told. REQUIRES: begin() follows with the same problem, or nothing."""
        self.drop()
        self.wish.close()
        self.wish = Wish(request.get("baseline") or EAGER, *descriptors[:1])
        self.wish.digest = request.get("baseline_digest") or ""
        self.wish.entry = request.get("entry") or ""
        self.use_float32(request)
        self.batches = None
        self.options, self.deadline = request, time.monotonic() + float(request["seconds"])
        reply: dict[str, Any] = {"fault": None, "sets": 0, "baseline": 0}
        _, failed = outcome_of(lambda: self.with_room(self.open_bench))
        if failed is not None:
            fault = fault_of(failed)
            let_go(failed)
            return {**reply, "fault": fault.to_json()}
        bench = self.batches.bench
        used = {"used": bench.beside.used, "note": bench.beside.note}
        return {**reply, "sets": bench.layout.sets, "baseline": bench.baseline.pid, **used}

    def with_room(self, work: Callable[[], Any]) -> Any:
        """What work returns; where it finds too little memory beside what is kept of other problems, once more without them."""
        for is_last in (False, True):
            try:
                return work()
            except Exception as e:
                short = lacks_memory(e) or isinstance(e, Fault) and e.category in ("gpu_memory", "unsupported_problem")
                if is_last or not short or not self.benches:
                    raise
            self.close_benches()
            self.await_ended()

    def open_bench(self) -> None:
        """Raises Fault and what lacks_memory()."""
        request = self.options
        bench = self.fit_bench(request)
        bench.beside.use(self.wish)
        bench.beside.until = self.deadline
        is_direct = self.device == "cpu" or request.get("clock") != "device"
        if bench.batches is None or bench.batches.is_direct != (is_direct or bench.is_random):
            bench.batches = Batches(bench, self.pool, self.await_ended, is_direct)
        self.batches = bench.batches
        self.batches.judgement = None
        self.batches.open()

    def prepare(self, request: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Before any candidate is there: one that is right at some shapes is not to learn that others cannot be judged. Found out once.
        Raises nothing."""
        self.drop()
        self.use_float32(request)
        self.batches = None
        parts = [request.get(x) for x in ("directory", "digest", "precision", "mutates", "variants", "float32")]
        key = json.dumps(parts, sort_keys=True)
        if key in self.prepared:
            return {"fault": None}
        _, failed = outcome_of(lambda: self.look_at_shapes(request))
        if failed is not None:
            fault = fault_of(failed)
            let_go(failed)
            return {"fault": fault.to_json()}
        if request.get("digest"):
            self.prepared.add(key)
        return {"fault": None}

    def look_at_shapes(self, request: dict[str, Any]) -> None:
        """Raises Fault and what lacks_memory()."""
        seen = variants.Seen(self.with_room(lambda: self.fit_bench(request)))
        for one in request["variants"]:
            label, part = variants.label_of(one), {**request, "constants": one["constants"]}
            try:
                bench = self.with_room(lambda x=part: self.fit_bench(x))
            except Fault as e:
                raise Fault(e.cls, e.category, f"{label}: {e.message}", e.hint) from None
            if clash := seen.add(label, bench):
                raise Fault("configuration", "bad_problem", f"failed to use {request['directory']}: {clash}")

    def batch(self, request: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        order = Order(request["patterns"], int(request["calls"]), int(request["number"]), bool(request["apart"]))
        return self.outcome_of_batches(lambda: self.batches_now().make(request["side"], order))

    def warm(self, request: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        self.judged_now().seal()
        return self.outcome_of_batches(lambda: self.batches_now().warm_up(int(request["calls"])))

    def batches_now(self) -> Batches:
        if self.batches is None:
            raise Fault("infrastructure", "python_failed", "nothing is being timed")
        x = self.judgement
        if x is not None and x.bench is not self.batches.bench:
            # Room was made for the candidate, and the bench with it. What was learned before it came still holds.
            x.bench.beside.use(self.wish)
            x.bench.beside.until = self.deadline
            x.bench.batches = self.batches = Batches(x.bench, self.pool, self.await_ended, self.batches.is_direct)
            self.batches.judgement = x
            self.batches.open()
        self.batches.judgement = x
        return self.batches

    def outcome_of_batches(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        reply: dict[str, Any] = {"fault": None}
        said, failed = outcome_of(work)
        reply.update(said or {})
        if failed is not None:
            fault = fault_of(failed)
            self.crowded = fault.category in ("out_of_memory", "gpu_memory")
            x = self.judgement
            # Who was right until then is not refused because a batch did not fit into what was left.
            reply["spent"] = fault.category in ("timed_out", "time_spent") and x is not None and x.is_out_of_time
            reply["fault"] = None if reply["spent"] else self.settled(failed).to_json()
        return {**reply, **self.found()}

    def begin(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        self.drop()
        self.use_float32(request)
        if self.crowded:
            self.close_benches()
            self.crowded = False
        for bench in self.benches.values():
            if bench.baseline is not None:
                bench.baseline.note_kills()
        # Once for all that comes of the request: who is judged once more has no time more.
        self.options, self.deadline = request, time.monotonic() + float(request["seconds"])
        if self.artifact >= 0:
            os.close(self.artifact)
        self.artifact = descriptors[0]
        self.source = read(os.dup(self.artifact)).source.decode("utf-8", "replace")
        reply: dict[str, Any] = {"correct": False, "fault": None}
        right, failed = outcome_of(self.judge_with_room)
        reply["correct"] = bool(right)
        if failed is not None:
            reply["fault"] = self.settled(failed).to_json()
        return {**reply, **self.found()}

    def settled(self, e: Exception) -> Fault:
        """What ended a judgement as a fault of whose fault it was."""
        fault = fault_of(e)
        let_go(e)  # it holds what ran out of memory
        x = self.judgement
        if x is None or not x.loaded:
            return fault
        is_late = fault.category == "time_spent"
        if not is_late and not blame.wants_control(fault):
            return fault
        try:
            self.await_ended(but=x.ended)  # what former ones do is not asked
            if is_late and self.kept_gpu_busy(x):
                return Fault(
                    "candidate",
                    "timed_out",
                    "the candidate kept the GPU at work while it was stopped, until its time was over",
                )
            if is_late or fault.category == "gpu_memory" and not self.took_memory(x):
                return fault
        except Fault as e:  # the GPU is lost, or the candidate's process does not end
            return e
        return blame.blamed(fault, self.control_works(x))

    def kept_gpu_busy(self, x: Judgement) -> bool:
        """Whether the GPU is at work beside the candidate, which nobody waits for now, and at rest once that is gone, for a second:
        others pause between two requests. What is judged beside it took as long as it liked. One that takes its time to go, too:
        nobody waits for us as long as that may be."""
        try:
            if x.bench.device != "cuda" or x.bench.flushes_settle():
                return False
            x.put_away_into(self.ending)
            if self.lingers(x):
                return True
            self.await_ended()
            return x.bench.flushes_settle() and x.bench.rests()
        except (Fault, RuntimeError):
            return False

    def took_memory(self, x: Judgement) -> bool:
        """Whether the candidate had so much of the GPU's memory that too little was left. Where others had it, a control that works
        without the candidate says nothing. What we have ourselves is none of theirs. Raises Fault."""
        if self.device != "cuda":
            return True
        x.bench.release()
        free, _ = memory_of_gpu(self.lib)
        x.put_away_into(self.ending)
        if self.lingers(x):
            return True
        self.await_ended()
        taken = memory_of_gpu(self.lib)[0] - free
        self.keep_alone(x.bench)
        return x.bench.is_too_much(taken, *memory_of_gpu(self.lib))

    def keep_alone(self, bench: Bench) -> None:
        """Closes what is kept of other problems, and the baseline."""
        for key in [key for key, other in self.benches.items() if other is not bench]:
            self.benches.pop(key).close()
        bench.close_baseline()

    def control_works(self, x: Judgement) -> bool:
        """Whether the problem's own model runs in a fresh process, now that the candidate is gone. One that takes its time to go
        is at fault without that."""
        bench = x.bench
        x.put_away_into(self.ending)
        if self.lingers(x):
            return True
        try:
            self.await_ended()
            bench.close_baseline()
            bench.make_room()
            own = bench.start_own_model(self.pool, bench.baseline_seed or 0, CONTROL_SECONDS)
            own.arena.fill(bench.draw([0]))
            bench.synchronize()
            own.place = own.arena.place
            own.row(1, CONTROL_SECONDS)
        except (Fault, *OUT_OF_MEMORY, RuntimeError):
            bench.close_baseline()
            return False
        if bench.baseline_seed is None or bench.beside.wish.kind != EAGER:
            bench.close_baseline()
        return True

    def judge_with_room(self) -> bool:
        """Whether the candidate is right. One that finds too little memory beside what is kept of other problems, or beside former
        candidates that are ending, is judged once more without them. Raises Fault and what lacks_memory()."""
        waited = 0.0
        try:
            return self.judge()
        except Exception as e:
            if not (isinstance(e, Fault) or lacks_memory(e)):
                raise
            others = self.benches.keys() - {(self.options["directory"], variants.version_of(self.options))}
            if (
                not (others or self.ending)
                or isinstance(e, Fault)
                and e.category not in ("out_of_memory", "gpu_memory", "unsupported_problem")
            ):
                raise
            x = self.judgement
            if x is not None:
                x.put_away_into(self.ending)
                if self.lingers(x):
                    raise
                waited = x.waited
        self.drop()
        self.close_benches()
        self.await_ended()
        return self.judge(waited)

    def judge(self, waited: float = 0.0) -> bool:
        """Whether the candidate is right. What it made us wait in a former look, and does in this, is held against all of the time
        of the request: of less, we could use up what it left of it."""
        request, started = self.options, time.monotonic()
        self.await_memory()
        bench = self.fit_bench(request)
        self.judgement = Judgement(bench, self.pool, request, kernels.may_compile_when_called(self.source))
        self.judgement.mark, self.judgement.deadline, self.judgement.waited = started, self.deadline, waited
        self.judgement.lap("task")
        self.check_language()
        self.judgement.load(self.artifact)
        self.await_ended()
        with open(bench.problem.path, encoding="utf-8") as file:
            if is_own_model(self.source, file.read(), name_of(request.get("entry") or "")):
                self.judgement.find(
                    "own_model", "info", "the problem's own model, but for names and settings of libraries"
                )
        right = self.judgement.judge_correctness()
        if right:
            self.judgement.judge_determinism()
        self.judgement.lap("correctness")
        return right

    def found(self) -> dict[str, Any]:
        """What the judgement has found out so far; lists are handed over once."""
        x = self.judgement
        if x is None:
            return {"trials": [], "findings": [], "spans": [], "seed": "", "inputs": "", "outputs": "", "notes": []}
        layout = x.bench.layout
        result = {
            "trials": x.trials,
            "findings": x.findings,
            "spans": x.spans,
            "seed": x.secret.hex(),
            "inputs": ", ".join(s.text() for s in layout.inputs if s),
            "outputs": ", ".join(s.text() for s in layout.outputs),
            "notes": x.bench.notes,
            "planned": x.planned,
            "patterns": [OWN, *x.kinds],
            "floor_bytes": x.bench.floor_bytes,
            "share_off": x.share_off,
        }
        if x.mode == "honest" and x.float32 == "fp32":  # else weights may be of a smaller type
            result.update(weight_bytes=x.bench.weight_bytes, read_rate=x.bench.read_rate)
        x.trials, x.findings, x.spans = [], [], []
        return result

    def check_language(self) -> None:
        """An answer in the wanted language defines a kernel in it. Raises Fault."""
        wanted = self.options.get("language") or "any"
        if wanted not in kernels.LANGUAGES:
            return
        if wanted in self.zygote.facts.get("missing", "").split():
            x = languages.LANGUAGES[wanted]
            raise Fault(
                "configuration",
                "language_missing",
                f"failed to judge answers in {wanted}: the interpreter has no package {x.package} (import {x.module})",
                f"{x.install}, for the interpreter that evaluation.python (--python) names",
            )
        if not kernels.own_kernels(self.source, wanted):
            raise Fault(
                "candidate",
                "wrong_language",
                f"the module defines no kernel in the wanted language, {wanted}",
                "write the operator as a kernel of your own",
            )

    def judged_now(self) -> Judgement:
        if self.judgement is None:
            raise Fault("infrastructure", "python_failed", "nothing is being judged")
        return self.judgement

    def end(self, request: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        reply: dict[str, Any] = {"fault": None, "output": ""}
        x = self.judgement
        if x is not None and x.process is not None:
            x.mark = time.monotonic()
            if request.get("share"):
                x.seal()
                self.measure_share(x, reply)
                x.lap("profile")
            x.put_away_into(self.ending)
            reply.update(self.found())
        if x is not None:
            reply["output"], reply["sealed"] = x.words, x.sealed
        self.drop()
        self.pool.refill()
        return reply

    def measure_share(self, x: Judgement, reply: dict[str, Any]) -> None:
        """How much of the GPU's time the candidate's own kernels have."""
        language, level = self.options.get("language") or "any", int(self.options.get("level") or 0)
        reply.update(kernel_share.measure(x, self.source, language, level))

    def check(self, request: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        self.drop()
        self.use_float32(request)
        self.close_benches()  # what is too large beside another need not be too large
        self.told.clear()
        self.prepared.clear()
        try:
            bench = self.bench(request)
        except Fault as e:
            return {"problems": [e.message], "notes": []}
        result, seen = problem_check.check(bench), variants.Seen(bench)
        for one in request.get("variants") or ():
            self.close_benches()
            label, part = variants.label_of(one), {**request, "constants": one["constants"]}
            try:
                bench = self.bench(part)
            except Fault as e:
                result["problems"].append(f"{label}: {e.message}")
                continue
            found, clash = problem_check.check(bench), seen.add(label, bench)
            result["problems"] += [f"{label}: {x}" for x in found["problems"]] + ([clash] if clash else [])
            result["notes"] += [f"{label}: {x}" for x in found["notes"] if x not in result["notes"]]
        return result

    def drop(self) -> None:
        """Ends the candidate without waiting until it is gone."""
        judgement, self.judgement = self.judgement, None
        if judgement is not None:
            judgement.put_away_into(self.ending)

    def await_ended(self, but: Optional[Process] = None) -> None:
        """Waits until candidates that were ended, `but` one, hold nothing of the GPU any longer. Raises Fault."""
        for process in [x for x in self.ending if x is not but]:
            self.ending.remove(process)
            if not process.close(working=LINGERING_SECONDS):
                raise Fault(
                    "infrastructure",
                    "gpu_stuck",
                    "failed to end a candidate's process within 10 s",
                    "`nvidia-smi` shows the GPU's state",
                )

    def await_memory(self) -> None:
        """Waits for candidates that were ended where they may still hold what the next one needs. Raises Fault."""
        if self.ending and self.device == "cuda":
            free, total = memory_of_gpu(self.lib)
            if free < LEAST_FREE * total:
                self.await_ended()

    def lingers(self, x: Judgement) -> bool:
        """Whether its candidate, which was ended, is still at work on its own end: that is how much it had mapped, and no GPU's fault."""
        ended = x.ended
        return ended is not None and ended in self.ending and not ended.ends(ENDING_SECONDS) and ended.is_working


def load_kernels(lib) -> None:
    """What descriptor 5 holds. Raises Fault."""
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    with os.fdopen(5, "rb") as file:
        file.seek(0)
        code = lib.km_gpu_kernels(file.read())
    if code != 0:
        raise Fault("infrastructure", "gpu_lost", f"failed to load the referee's kernels: the driver says {code}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--pool", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", default="", help="folder of what torch.compile made")
    options = parser.parse_args()
    Kept.folder = options.cache
    sys.dont_write_bytecode = True
    torch.set_num_threads(options.threads)
    lib = native.load(options.library)
    control = socket.socket(fileno=3)
    zygote = Zygote(socket.socket(fileno=4))
    referee = Referee(lib, zygote, options.device, options.pool)
    try:
        if options.device == "cuda":
            load_kernels(lib)
        weights.import_ahead()
        zygote.await_ready(START_SECONDS)
        referee.pool.refill()
        channel.send(control, {"ready": {"torch": torch.__version__, **zygote.facts}})
    except (Fault, RuntimeError) as e:
        channel.send(control, {"failed": str(e)[:2000]})
        return
    handlers = {
        "prepare": referee.prepare,
        "open": referee.open,
        "begin": referee.begin,
        "batch": referee.batch,
        "warm": referee.warm,
        "end": referee.end,
        "check": referee.check,
    }
    while True:
        try:
            request, descriptors = channel.receive(control)
        except channel.Closed:
            os._exit(0)  # the warm process ends its children; nothing here needs to be put away
        try:
            channel.send(control, handlers[request["op"]](request, descriptors))
        except Exception:
            words = traceback.format_exc()[-3000:]
            fault = Fault("infrastructure", "python_failed", "the torch referee failed: " + words)
            channel.send(control, {"fault": fault.to_json()})


if __name__ == "__main__":
    main()
