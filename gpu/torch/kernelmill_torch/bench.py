"""One problem, ready to judge candidates: its truth, the shared buffers, and its own model as the baseline."""

import os
import statistics
import time
from typing import Any, Optional, Sequence

import torch

from kernelmill_torch import compare, native, uses
from kernelmill_torch.admission import TOO_LARGE, Admitted, admit, spare_bytes
from kernelmill_torch.arena import Arena
from kernelmill_torch.baselines import Baseline
from kernelmill_torch.contents import OWN
from kernelmill_torch.faults import Fault, lacks_memory
from kernelmill_torch.flushes import Flushes
from kernelmill_torch.pool import Pool
from kernelmill_torch.problem import OUT_OF_MEMORY, BadProblem, Problem
from kernelmill_torch.processes import Process
from kernelmill_torch.reach import Reach
from kernelmill_torch.reading import SECONDS as READING_SECONDS
from kernelmill_torch.reading import bytes_of, floor_bytes
from kernelmill_torch.roundings import rounds_inside
from kernelmill_torch.rousing import Rousing, clock_mhz, nominal_mhz
from kernelmill_torch.truths import Truths
from kernelmill_torch.weights import least_bytes, read_rate, reads_of

SHARE_OF_MEMORY = 0.8  # of a GPU's memory that a problem may need
ROOM = 0.3  # of it that a candidate finds free
MOST_SETS = 32
SETS_BYTES = 8 << 30  # that several sets may take together; or a 16th of the memory
FLUSH_BYTES = 256 << 20  # several times any cache
USUAL_CACHE = 50 << 20  # where this torch does not say
CONTEXT_BYTES = 1 << 30  # that a process has besides its tensors
AGAIN_OUTPUTS = 3  # of a call, that are in use besides where what seems wrong is looked at again
NOT_EXACT = "too large for a reference in double precision"
ONE_ARENA = "too large for buffers of the baseline's own"
# What a look at a problem tells, which takes seconds: of the bench, and of its Problem.
TOLD = (
    "place",
    "notes",
    "layout",
    "needed",
    "share",
    "is_random",
    "admitted",
    "floor_bytes",
    "weight_bytes",
    "read_rate",
    "shares_inputs",
    "is_known_whole",
    "unfit",
)
TOLD_OF_PROBLEM = (
    "exact",
    "has_been_exact",
    "is_random",
    "dense_terms",
    "output_elements",
    "has_integer_outputs",
    "is_float32",
    "known_traits",
    "rounds",
)


def memory_of_gpu(lib) -> tuple[int, int]:
    """Free and total bytes."""
    import ctypes

    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if lib.km_gpu_memory(ctypes.byref(free), ctypes.byref(total)) != 0:
        raise Fault(
            "infrastructure", "gpu_lost", "failed to ask the GPU for its memory: " + lib.km_gpu_problem().decode()
        )
    return free.value, total.value


def cache_bytes() -> int:
    """Of the GPU's second level."""
    return getattr(torch.cuda.get_device_properties(0), "L2_cache_size", USUAL_CACHE)


class Bench(Flushes, Truths):
    """Thread safety: none. REQUIRES: close() before the next one needs the memory."""

    rousing: Optional[Rousing] = None  # of the GPU, which all problems share
    float32 = ""  # arithmetic that all use now, as of candidate.use_float32()

    def __init__(
        self,
        lib,
        device: str,
        directory: str,
        precision: str,
        told: Optional[dict[str, Any]] = None,
        mutates: Sequence[int] = (),
        constants: Optional[dict[str, Any]] = None,
    ):
        """`told`: what another bench of the same problem was told, by told(). `constants`: of a variant."""
        self.lib, self.device, self.directory = lib, device, directory
        self.baseline: Optional[Process] = None
        self.beside = Baseline(self)  # which baseline that is
        self.baseline_seed: Optional[int] = None
        self.arena: Optional[Arena] = None  # which a candidate maps
        # The baseline's own: work that a candidate leaves on the GPU could wait for the contents of rows that it sees.
        self.own_arena: Optional[Arena] = None
        self.notes: list[str] = []
        self.known_truths = {}
        # What passes without knowing the inputs, by the benchmark's rules; None: not looked for yet.
        self.blind: Optional[str] = None
        self.unfit: Optional[list[str]] = None  # why nothing can be judged by the problem, likewise
        self.unfit_for_suite: dict[str, list[str]] = {}  # the same by a suite's tolerance
        # Where parameters are made first. One that is made elsewhere has other numbers; see Judgement.
        self.place = device
        try:
            self.problem = Problem(directory, device, precision, mutates, constants)
            if told is None:
                self._measure()
            else:
                self._recall(told)
            self.problem.is_looked_at = True
            self._make_arenas()
            self.flush_buffer = torch.empty(
                FLUSH_BYTES if device == "cuda" else 64 << 20, dtype=torch.uint8, device=device
            )
            self.cache_bytes = cache_bytes() if device == "cuda" else 0
            self.speck = torch.zeros(1, device=device)
            self.rouse()
            self.usual_flush = self._usual_flush() if device == "cuda" else 0.0
        except Exception as e:
            self._close_arenas()
            if isinstance(e, BadProblem):
                raise Fault("configuration", e.category, str(e)) from None
            text = f"{type(e).__name__}: {str(e)[:300]}"
            if lacks_memory(e):
                raise Fault(
                    "configuration", "unsupported_problem", f"the problem {directory} does not fit this machine: {text}"
                ) from None
            raise Fault(
                "configuration",
                "bad_problem",
                f"the problem {directory} fails: {text}",
                "`kernelmill task check` says more",
            ) from None
        # Draws places to look at; nothing else draws from it.
        self.places = torch.Generator(device=device)
        self.places.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        self.batches = None  # that time candidates

    def rouse(self) -> None:
        """Returns when the GPU's clock is up."""
        if self.device != "cuda":
            return
        if Bench.rousing is None:
            Bench.rousing = Rousing(nominal_mhz())
        Bench.rousing.rouse(lambda: self.flush_buffer.add_(1), clock_mhz)

    def _measure(self) -> None:
        """Shapes, memory and how many sets of buffers there are."""
        self.release()
        others = self._allocated()
        if why := uses.why_not_mutable(self.problem.draw(1), self.problem.mutates):
            raise BadProblem("bad_task", f"failed to use the problem {self.directory}: {why}")
        try:
            layout = self.problem.layout(self.place)
        except BadProblem:
            if self.place == "cpu":
                raise
            self.place = "cpu"  # a model that insists on it
            layout = self.problem.layout(self.place)
        # Before anything is found out by running it again on the same inputs, and before a candidate can be blamed for it.
        if written := uses.written_inputs(self.problem):
            raise BadProblem("bad_problem", uses.why_not_declared(self.problem, written))
        peak = self._peak(layout) - others
        total = self._total()
        allowed = SHARE_OF_MEMORY * total
        # Side by side: the buffers, the referee's run, and a candidate that needs what the model needs.
        needed = layout.set_bytes + 2 * peak + FLUSH_BYTES
        if needed > allowed:
            raise BadProblem(
                "unsupported_problem",
                f"the problem {self.directory} needs {needed / 2**30:.1f} GiB, more than {SHARE_OF_MEMORY:.0%} "
                f"of {total / 2**30:.1f} GiB",
            )
        if needed + 2 * peak > allowed:
            self.problem.forget_exact()
            self.notes.append(NOT_EXACT)
        if any(x.dtype.is_complex for x in layout.outputs):
            raise BadProblem(
                "unsupported_problem", f"the problem {self.directory} has complex outputs, which are not compared"
            )
        self.problem.is_random = self._draws_when_called()
        self.problem.exact = self.problem.exact and not self.problem.is_random  # other random numbers would be drawn
        self.problem.rounds = not self.problem.is_random and rounds_inside(self.problem, self.problem.draw(1))
        layout.sets = max(1, min(MOST_SETS, min(SETS_BYTES, total // 16) // layout.set_bytes))
        self.layout, self.needed = layout, needed
        self.share = self._share()
        self.admitted: Admitted = admit(self.problem, self.device, self._beside())
        self.admitted.full -= others
        self.release()
        if self.problem.was_short_of_memory:
            self.notes.append(NOT_EXACT)
        # What is forgotten of random numbers on the problem's own inputs need not be on others.
        self.is_random = self.problem.is_random or any(x.is_random for x in self.admitted.gauges.values())
        if self.is_random:
            self.problem.forget_exact()
        started, self.is_known_whole = time.monotonic(), not self.admitted.untried and not self.was_short_of_memory
        self.floor_bytes = (
            floor_bytes(self.problem, sum(x.bytes for x in layout.outputs)) if self.device == "cuda" else 0.0
        )
        self._weigh()
        self.is_known_whole &= time.monotonic() - started < READING_SECONDS
        self.shares_inputs = uses.shares_inputs(self.problem)

    def _share(self) -> int:
        """Bytes of the GPU's memory that a process has which runs the model on inputs in an arena: its context, parameters, what a run
        needs, and the outputs of a row. Nobody is at fault by taking as much."""
        model = self.problem.models[self.problem.dtype]
        outputs = (self.layout.sets - 1) * sum(x.bytes for x in self.layout.outputs)  # of a row's other calls
        return CONTEXT_BYTES + sum(map(bytes_of, [*model.parameters(), *model.buffers()])) + self._run_bytes() + outputs

    def _beside(self) -> int:
        """Bytes that are in use while somebody is judged besides those of the judging: arenas, baseline, candidate, and what flushes."""
        return self._arena_count() * self.layout.sets * self.layout.set_bytes + 2 * self.share + FLUSH_BYTES

    def is_too_much(self, taken: int, free: int, total: int) -> bool:
        """Whether a candidate that is gone, and whose bytes are free, left too little: it had more than its share, all that judging
        takes with that is there now, and would not be, or hardly, beside what it had more. Or it had more than its problem needs in
        any case: others may have had memory then that they gave back. To look again at what seems wrong takes more than admission
        knows; nobody is to choose an ending by that."""
        room, full = free + self.held_bytes() + self._allocated(), self.admitted.full
        more, hardly = (
            taken - self.share,
            total // 16 + (self.looks_again and AGAIN_OUTPUTS * sum(x.bytes for x in self.layout.outputs)),
        )
        return taken > max(self.share, CONTEXT_BYTES + self.needed) or more > 0 and full <= room < full + more + hardly

    def _arena_count(self) -> int:
        return 2 if self.needed + self.layout.sets * self.layout.set_bytes <= SHARE_OF_MEMORY * self._total() else 1

    def _total(self) -> int:
        """Bytes of memory, of the GPU's or the machine's."""
        return (
            memory_of_gpu(self.lib)[1]
            if self.device == "cuda"
            else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        )

    def _make_arenas(self) -> None:
        self.release()
        self.arena = self.own_arena = Arena(self.lib, self.device, self.layout)
        if self._arena_count() == 2:
            self.own_arena = Arena(self.lib, self.device, self.layout)
        elif ONE_ARENA not in self.notes:
            self.notes.append(ONE_ARENA)

    def told(self) -> Optional[dict[str, Any]]:
        """What the look at the problem has told, for another bench of the same files. None where a look at another moment
        might tell more: there was too little memory or time."""
        if not self.is_known_whole:
            return None
        return {
            **{name: getattr(self, name) for name in TOLD},
            "problem": {name: getattr(self.problem, name) for name in TOLD_OF_PROBLEM},
        }

    def _recall(self, told: dict[str, Any]) -> None:
        vars(self).update((name, told[name]) for name in TOLD)
        vars(self.problem).update(told["problem"])

    def _weigh(self) -> None:
        """What of the parameters a call must read, and how fast memory gives it; nothing where there is no room to find out."""
        self.weight_bytes = self.read_rate = 0.0
        try:
            reads = reads_of(self.problem)
            self.problem.dense_terms = reads.terms_of_weights
            is_known = self.device == "cuda" and not self.problem.rounds  # else weights may be kept in the narrow type
            if is_known and (found := least_bytes(self.problem, reads)):
                self.weight_bytes, self.read_rate = found, read_rate(self.problem)
        except OUT_OF_MEMORY:
            self.is_known_whole = False
            self.release()

    @property
    def was_short_of_memory(self) -> bool:
        """Whether double precision or kinds of contents found too little memory."""
        return (
            self.problem.was_short_of_memory or self.admitted.is_crowded or TOO_LARGE in self.admitted.refused.values()
        )

    @property
    def baseline_tells(self) -> bool:
        """Whether what the baseline gives says what is right: not where it is code like a candidate's."""
        return not self.beside.wish.is_module

    @property
    def shares_arena(self) -> bool:
        """Whether baseline and candidate map the same memory."""
        return self.own_arena is self.arena

    def _usual_flush(self) -> float:
        """Seconds of a flush right after contents were written, as they are before each row; nobody is judged yet."""
        times = []
        for seed in range(5):
            contents = self.draw([seed])
            self.arena.poison(1)
            times.append(self.reveal(self.arena, contents)[1])
        return statistics.median(times)

    def _allocated(self) -> int:
        return torch.cuda.memory_allocated() if self.device == "cuda" else 0

    def _peak(self, layout) -> int:
        """Bytes of a run of the model: parameters, inputs, outputs, what it needs in between."""
        if self.device != "cuda":
            return layout.set_bytes
        self.release()
        torch.cuda.reset_peak_memory_stats()
        self.problem.run(self.problem.draw(1))
        return torch.cuda.max_memory_allocated()

    def _run_bytes(self) -> int:
        """Of a run of the model besides parameters and inputs."""
        if self.device != "cuda":
            return sum(x.bytes for x in self.layout.outputs)
        inputs = self.problem.draw(1)
        self.release()
        before = torch.cuda.memory_reserved()
        torch.cuda.reset_peak_memory_stats()
        self.problem.run(inputs)
        return torch.cuda.max_memory_reserved() - before

    def _draws_when_called(self) -> bool:
        """Whether the model itself draws random numbers: the same inputs give other outputs."""
        inputs = self.problem.draw(2)
        first = self.problem.run(inputs)
        second = self.problem.run(inputs)
        rule = compare.Rule(1e-3, 1e-3)
        return compare.count_bad([(a, b, rule) for a, b in zip(first, second)]) > 0

    def release(self) -> None:
        """Gives torch's spare memory back to the GPU, before somebody else needs it."""
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def spare_bytes(self) -> int:
        return spare_bytes(self.device)

    def held_bytes(self) -> int:
        """Of memory that candidate, baseline and this process share."""
        return sum(x.memory.capacity for x in {self.arena, self.own_arena} - {None})

    def make_room(self) -> None:
        """The same, where less is free than a candidate may need: giving back and taking again costs time, and the GPU
        wipes what was given back while others work."""
        if self.device == "cuda":
            free, total = memory_of_gpu(self.lib)
            if free < max(ROOM * total, self.needed):
                torch.cuda.empty_cache()

    def synchronize(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    # -- processes ------------------------------------------------------------------------------

    def attach(
        self,
        process: Process,
        arena: Arena,
        name: str,
        seed: int,
        place: str,
        seconds: float,
        mode: str = "",
        kept: int = -1,
    ) -> list[int]:
        """Builds the model with the parameters of a seed and maps an arena. Returns what the process says are the fingerprints
        of its tensors. `mode` of torch.compile, and what that left before, for baselines."""
        blob = native.memory_file("kernelmill-init", 0)
        os.write(blob, self.problem.init_blob())
        os.lseek(blob, 0, os.SEEK_SET)
        if process.reach is not None:  # the model is built once more
            process.reach.close()
        process.arena, process.reach = arena, Reach(self.lib, self.device, self.layout)
        try:
            said = process.ask(
                {
                    "op": "build",
                    "class": name,
                    "seed": seed,
                    "place": place,
                    "dtype": str(self.problem.dtype or torch.float32)[6:],  # which leaves it as it is made
                    "mutates": self.problem.mutates,
                    "compile": mode,
                },
                seconds,
                (blob, kept) if kept >= 0 else (blob,),
            ).get("fingerprints")
        finally:
            os.close(blob)
        memory = arena.memory
        at = process.ask(
            {"op": "buffers", "layout": self.layout.to_json(), "capacity": memory.capacity},
            seconds,
            (memory.fd, process.reach.fd),
        ).get("at")
        process.reach.share(at, memory)
        return said if isinstance(said, list) and all(isinstance(x, int) for x in said) else []

    def start_baseline(self, pool: Pool, seed: int, seconds: float) -> Process:
        """The baseline in a process of its own, with the parameters of a seed. Raises Fault, never a candidate's."""
        if self.baseline is not None and self.baseline.alive():
            return self.baseline
        self.close_baseline()
        try:
            self.baseline = self.beside.start(pool, seed, seconds)
        except Fault as e:
            raise self.blame_problem(e) from None
        return self.baseline

    def start_own_model(self, pool: Pool, seed: int, seconds: float) -> Process:
        """The problem's own model in place of the baseline, whatever that is to be. Raises Fault likewise."""
        self.close_baseline()
        try:
            self.baseline = self.beside.own(pool, seed, seconds)
        except Fault as e:
            raise self.blame_problem(e) from None
        return self.baseline

    def has_parameters(self) -> bool:
        """Whether the model has parameters or buffers that a seed could give other numbers."""
        model = self.problem.models[self.problem.dtype]
        return any(True for _ in model.parameters()) or any(True for _ in model.buffers())

    def use_parameters(self, seed: int) -> None:
        """Parameters of another seed from now on."""
        if seed != self.baseline_seed:
            self.close_baseline()
        self.baseline_seed = seed

    def close_baseline(self) -> None:
        if self.baseline is not None:
            self.baseline.close()
            self.baseline = None

    def blame_problem(self, e: Fault) -> Fault:
        """A fault of the baseline is the problem's, or ours; never the candidate's."""
        if e.cls != "candidate":
            return e
        if e.category == "out_of_memory":
            return Fault("infrastructure", "gpu_memory", f"the baseline found too little memory: {e.message}")
        if self.beside.wish.is_module:
            return Fault(
                "configuration",
                "bad_baseline",
                f"the baseline of {self.directory} cannot be timed: {e.message}",
                "name another with evaluation.baseline, or `eager`",
            )
        return Fault("configuration", "bad_problem", f"the problem {self.directory} cannot be timed: {e.message}")

    def draw(self, seeds: list[int], kind: str = OWN) -> list[list[Any]]:
        """Contents of sets, one a seed, where no other process sees them."""
        return [self.problem.draw(seed, kind, seed) for seed in seeds]

    def close(self) -> None:
        """Ends the baseline and gives the memory back."""
        self.close_baseline()
        self.flush_buffer = None
        self._close_arenas()
        self.problem.models.clear()
        self.release()

    def _close_arenas(self) -> None:
        for arena in {self.arena, self.own_arena} - {None}:
            arena.close()
        self.arena = self.own_arena = None
