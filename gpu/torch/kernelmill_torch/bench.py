"""One problem, ready to judge candidates: its truth, the shared buffers, and its own model as the baseline."""

import math
import os
import statistics
import time
from typing import Any, Callable, Optional

import torch

from kernelmill_torch import compare, native
from kernelmill_torch.admission import TOO_LARGE, Admitted, admit, refine
from kernelmill_torch.arena import Arena
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.contents import KINDS, OWN
from kernelmill_torch.problem import OUT_OF_MEMORY, BadProblem, Problem, Truth
from kernelmill_torch.processes import Fault, Pool, Process, Row
from kernelmill_torch.reach import Reach
from kernelmill_torch.reading import floor_bytes
from kernelmill_torch.watch import Free

SHARE_OF_MEMORY = 0.8      # of a GPU's memory that a problem may need
ROOM = 0.3                 # of it that a candidate finds free
MOST_SETS = 32
SETS_BYTES = 4 << 30       # that several sets may take together; or a 32nd of the memory
FLUSH_BYTES = 256 << 20    # several times any cache
LOOKS = 3
UNUSUAL = 1.5              # times what was once learned: a candidate may have made it longer
LEARNING_ROWS = 7          # of each length, of which the first is not like the others
SHORT = 4                  # times fewer calls than in a row
SLACK = 6e-5               # seconds that a row may take besides its calls, more than one without calls
WARMED_SECONDS = 5e-3      # calls shorter than that are made once on other contents first
QUEUE_SECONDS = 0.05       # in which calls are queued that do not wait for the GPU, and longer where their row took longer
LOSSES_SEED = 19
SAMPLES = 4096             # places of an output that are looked at when a row is done


def memory_of_gpu(lib) -> tuple[int, int]:
    """Free and total bytes."""
    import ctypes

    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if lib.km_gpu_memory(ctypes.byref(free), ctypes.byref(total)) != 0:
        raise Fault("infrastructure", "gpu_lost", "failed to ask the GPU for its memory: " + lib.km_gpu_problem().decode())
    return free.value, total.value


class Gateless(Exception):
    """Calls cannot be queued ahead: the process waits for the GPU in one of them, or there are too many launches."""


class Bench:
    """Thread safety: none. REQUIRES: close() before the next one needs the memory."""

    def __init__(self, lib, device: str, directory: str, precision: str):
        self.lib, self.device, self.directory = lib, device, directory
        self.baseline: Optional[Process] = None
        self.baseline_seed: Optional[int] = None
        self.arena: Optional[Arena] = None  # which a candidate maps
        # The baseline's own: work that a candidate leaves on the GPU could wait for the contents of rows that it sees.
        self.own_arena: Optional[Arena] = None
        self.notes: list[str] = []
        self.known_truths: dict[tuple, Truth] = {}  # by parameters and kind
        self.blind: dict[str, str] = {}  # by mode, what passes without knowing the inputs
        # Where parameters are made first. One that is made elsewhere has other numbers; see Judgement.
        self.place = device
        try:
            self.problem = Problem(directory, device, precision)
            self._measure()
            self.flush_buffer = torch.empty(FLUSH_BYTES if device == "cuda" else 64 << 20, dtype=torch.uint8, device=device)
            self.speck = torch.zeros(1, device=device)
            self.usual_flush = self._usual_flush() if device == "cuda" else 0.0
        except Exception as e:
            self._close_arenas()
            if isinstance(e, BadProblem):
                raise Fault("configuration", e.category, str(e)) from None
            text = f"{type(e).__name__}: {str(e)[:300]}"
            if isinstance(e, MemoryError) or "out of memory" in text.lower():
                raise Fault("configuration", "unsupported_problem",
                            f"the problem {directory} does not fit this machine: {text}") from None
            raise Fault("configuration", "bad_problem", f"the problem {directory} fails: {text}",
                        "`kernelmill task check` says more") from None
        # Draws places to look at; nothing else draws from it.
        self.places = torch.Generator(device=device)
        self.places.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        self.wake_core: Callable[[], None] = lambda: None
        self.row_length = 0  # that was found while there was no candidate
        self.learned: set[str] = set()  # clocks by which costs were
        self.call_seconds = 0.0  # of the baseline, with its launches
        self.decoy: Optional[list[Any]] = None  # contents of an earlier row
        self.free = Free()
        self.known: dict[tuple[int, bool], float] = {}  # the least seconds besides calls that a row ever took, by length and
        self.known_fixed: dict[bool, float] = {}        # whether it was gated; the least of an empty row
        # Of the latest row.
        self.outputs: list[BufferSet] = []
        self.is_aside = False  # whether the process could not change them any more
        self.samples: Optional[list[tuple[torch.Tensor, torch.Tensor]]] = None  # if it could
        self.changed_inputs: Optional[list[int]] = None
        self.gives_inputs = False  # whether outputs lie in the inputs, where the model makes new ones

    def _measure(self) -> None:
        """Shapes, memory and how many sets of buffers there are."""
        self.release()
        others = self._allocated()
        try:
            layout = self.problem.layout(self.place)
        except BadProblem:
            if self.place == "cpu":
                raise
            self.place = "cpu"  # a model that insists on it
            layout = self.problem.layout(self.place)
        peak = self._peak(layout) - others
        total = memory_of_gpu(self.lib)[1] if self.device == "cuda" else os.sysconf("SC_PHYS_PAGES") * os.sysconf(
            "SC_PAGE_SIZE")
        allowed = SHARE_OF_MEMORY * total
        # Side by side: the buffers, the referee's run, and a candidate that needs what the model needs.
        needed = layout.set_bytes + 2 * peak + FLUSH_BYTES
        if needed > allowed:
            raise BadProblem("unsupported_problem",
                             f"the problem {self.directory} needs {needed / 2**30:.1f} GiB, more than {SHARE_OF_MEMORY:.0%} "
                             f"of {total / 2**30:.1f} GiB")
        if needed + 2 * peak > allowed:
            self.problem.exact = False
            self.problem.models.pop(torch.float64, None)
            self.notes.append("too large for a reference in double precision")
        if any(x.dtype.is_complex for x in layout.outputs):
            raise BadProblem("unsupported_problem", f"the problem {self.directory} has complex outputs, which are not compared")
        self.problem.is_random = self._draws_when_called()
        self.problem.exact = self.problem.exact and not self.problem.is_random  # other random numbers would be drawn
        self.admitted: Admitted = admit(self.problem, self.device)
        # What is forgotten of random numbers on the problem's own inputs need not be on others.
        self.is_random = self.problem.is_random or any(x.is_random for x in self.admitted.gauges.values())
        if self.is_random:
            self.problem.exact = False
            self.problem.models.pop(torch.float64, None)
        self.floor_bytes = floor_bytes(self.problem, sum(x.bytes for x in layout.outputs)) if self.device == "cuda" else 0.0
        self.shares_inputs, self.changes_inputs = self.problem.uses_of_inputs()
        self.sets_bytes = min(SETS_BYTES, total // 32)
        layout.sets = max(1, min(MOST_SETS, self.sets_bytes // layout.set_bytes))
        self.release()
        self.layout, self.needed = layout, needed
        self.arena = self.own_arena = Arena(self.lib, self.device, layout)
        if needed + layout.sets * layout.set_bytes <= allowed:
            self.own_arena = Arena(self.lib, self.device, layout)
        else:
            self.notes.append("too large for buffers of the baseline's own")

    @property
    def was_short_of_memory(self) -> bool:
        """Whether double precision or kinds of contents found too little memory."""
        return self.problem.was_short_of_memory or TOO_LARGE in self.admitted.refused.values()

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

    def attach(self, process: Process, arena: Arena, name: str, seed: int, place: str, seconds: float) -> list[int]:
        """Builds the model with the parameters of a seed and maps an arena. Returns what the process says are the fingerprints
        of its tensors."""
        blob = native.memory_file("kernelmill-init", 0)
        os.write(blob, self.problem.init_blob())
        os.lseek(blob, 0, os.SEEK_SET)
        if process.reach is not None:  # the model is built once more
            process.reach.close()
        process.arena, process.reach = arena, Reach(self.lib, self.device, self.layout)
        try:
            said = process.ask({"op": "build", "class": name, "seed": seed, "place": place,
                                "dtype": str(self.problem.dtype)[6:]}, seconds, (blob,)).get("fingerprints")
        finally:
            os.close(blob)
        memory = arena.memory
        at = process.ask({"op": "buffers", "layout": self.layout.to_json(), "capacity": memory.capacity}, seconds,
                         (memory.fd, process.reach.fd)).get("at")
        process.reach.share(at, memory)
        return said if isinstance(said, list) and all(isinstance(x, int) for x in said) else []

    def start_baseline(self, pool: Pool, seed: int, seconds: float) -> Process:
        """The problem's own model in a process of its own, with the parameters of a seed."""
        if self.baseline is not None and self.baseline.alive():
            return self.baseline
        self.close_baseline()
        process = pool.take("the problem's own model")
        try:
            with open(self.problem.path, "rb") as source:
                process.ask({"op": "load", "class": "Model"}, seconds, (source.fileno(),))
            self.attach(process, self.own_arena, "Model", seed, self.place, seconds)
        except Fault as e:
            process.close()
            raise self.blame_problem(e) from None
        self.baseline = process
        return process

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
            return Fault("infrastructure", "gpu_memory", f"the problem's own model found too little memory: {e.message}")
        return Fault("configuration", "bad_problem", f"the problem {self.directory} cannot be timed: {e.message}")

    # -- rows -----------------------------------------------------------------------------------

    def draw(self, seeds: list[int], kind: str = OWN) -> list[list[Any]]:
        """Contents of sets, one a seed, where nobody else sees them."""
        return [self.problem.draw(seed, kind) for seed in seeds]

    def truth(self, inputs: list[Any], seed: int, kind: str = OWN) -> Truth:
        """What is right for contents of a kind, and what the arithmetic may lose there."""
        result = self.problem.truth(inputs, seed)
        refine(result, self.admitted.gauges[kind], self.problem, not self.has_parameters())
        if len(self.known_truths) > 2 * len(KINDS):
            self.known_truths.clear()
        self.known_truths.setdefault((self.problem.model_key, kind), Truth([], result.level, result.spread, result.floor))
        return result

    def losses(self, kind: str) -> Truth:
        """What it loses there with the parameters in use; nothing is wanted."""
        key = self.problem.model_key, kind
        if key not in self.known_truths:
            self.truth(self.problem.draw(LOSSES_SEED, kind), LOSSES_SEED, kind)
        return self.known_truths[key]

    def flush(self) -> float:
        """Evicts everything from the caches. Returns the seconds, which are more when somebody else is busy."""
        self.synchronize()
        started = time.monotonic()
        self.flush_buffer.add_(1)
        self.synchronize()
        return time.monotonic() - started

    def longest_flush(self) -> float:
        """What a flush takes at most while nobody else has the GPU."""
        return max(1.5 * self.usual_flush, self.usual_flush + 1e-4) if self.device == "cuda" else math.inf

    def flushes_settle(self) -> bool:
        """Whether several flushes in a row take what is usual, within a second."""
        end = time.monotonic() + 1
        good = 0
        while good < 5 and time.monotonic() < end:
            good = good + 1 if self.flush() <= self.longest_flush() else 0
        return good == 5

    def reveal(self, arena: Arena, contents: list[list[Any]]) -> tuple[float, float]:
        """Puts contents where a timed process sees them, and evicts them from the caches. Returns the seconds, and those of
        the second part."""
        self.speck.add_(1)  # the GPU takes some 0.15 ms to turn from another process to this one
        self.synchronize()
        started = time.monotonic()
        arena.fill(contents)
        flushing = self.flush()
        return time.monotonic() - started, flushing

    def look(self) -> float:
        """Seconds of next to nothing on the GPU, which are more while somebody is at work there: the GPU turns to who has
        work whenever the other has none, so there is more than one look."""
        if self.device != "cuda":
            return 0.0
        started = time.monotonic()
        for _ in range(LOOKS):
            self.speck.add_(1)
            torch.cuda.synchronize()
        return time.monotonic() - started

    def row(self, process: Process, count: int, seconds: float, contents: list[list[Any]], is_gated: bool = False,
            seed: int = 0) -> Row:
        """One row on cold caches; `outputs` is what it gave then. Of a gated row the calls are queued before contents come, and
        their time is the GPU's alone. With a seed torch's generators begin with it when the row does. Raises Fault, and
        Gateless, after which the process is as after any row.

        A stopped process runs no code, but work that it gave to the GPU before goes on there, and may wait for contents
        to come. So with a GPU they come when it is awake already, and the calls follow at once: what is done between is
        seen in what it takes. On a CPU nobody who is awake may see them before the clock runs."""
        on_gpu = self.device == "cuda"
        process.place = process.arena.place
        revealing = turning = 0.0
        self.outputs, self.changed_inputs = [], None
        is_warmed = on_gpu and not is_gated and self.call_seconds < WARMED_SECONDS
        if is_warmed:
            process.arena.fill([self.decoy or self.draw([1])[0]])
            self.synchronize()  # indices of which a part is there would be none
        self.decoy = contents[0] if contents else self.decoy  # nobody is asked for the same again
        if process.reach.is_fleeting:
            process.reach.forget()
        if not on_gpu:
            _, flushing = self.reveal(process.arena, contents)
        self.wake_core()
        waking, awake = process.wake(seconds)
        if on_gpu:
            waking = 0.0
            if is_warmed:
                # Python that was stopped takes 0.1 to 0.3 ms more for its first launches, which is no work of its calls.
                process.call(native.CALL, 0, 1, seconds)
            is_queued = is_gated and process.queue(count, self.queue_seconds(count), seed)
            revealing, flushing = self.reveal(process.arena, contents)
            if not is_gated:
                # The GPU takes 0.16 ms to turn to this process; who does more than that here is seen in what it takes.
                turning = process.call(native.TURN, 0, 0, seconds)
        if on_gpu and is_gated:
            calls = self.open_gate(process, is_queued, seconds)
        else:
            calls = process.call(native.CALL, 0, count, seconds, seed=seed)
        started = time.monotonic()
        process.halt()
        looking = self.look()
        if not on_gpu:
            process.stop()  # then it does nothing, and takes no time
            taking = time.monotonic() - started
        taken = self.take(process.reach.take(process.number(), count))
        if on_gpu:
            # Until then work may go on that it gave to the GPU; what it started is stopped after that, for it takes a while
            # to find.
            taking = time.monotonic() - started
            process.stop()
        self.gives_inputs = process.reach.is_shared and not self.shares_inputs
        fetching = 0.0 if taken else self.fetch(process, count, seconds, contents)
        if self.changed_inputs is None:
            self.changed_inputs = process.arena.find_changed(contents)
        return Row(waking, revealing, turning, calls, taking, fetching, awake, flushing, looking)

    def queue_seconds(self, count: int) -> float:
        """What queueing calls may take."""
        return QUEUE_SECONDS + 4 * self.call_seconds * count

    @staticmethod
    def open_gate(process: Process, is_queued: bool, seconds: float) -> float:
        """Seconds of queued calls. Raises Fault and Gateless."""
        if is_queued:
            return process.release(seconds, True)
        try:
            process.release(seconds, False)
        except Fault as e:
            if e.category == "timed_out" or not process.alive():  # it was told to end, and may not have yet
                raise
            raise Gateless(e.message) from None
        finally:
            process.stop()
        raise Gateless("a call waits for the GPU")

    def take(self, found: Optional[list[BufferSet]]) -> bool:
        """Puts the outputs of a row aside, or takes samples of what is too large for that. False where there are none."""
        if found is None:
            return False
        self.outputs = self.put_aside(found)
        self.samples = None if self.is_aside else self.sample(found)
        return True

    def fetch(self, process: Process, count: int, seconds: float, contents: list[list[Any]]) -> float:
        """Takes the outputs of a row for which the process has to go on. Returns the seconds. Raises Fault."""
        reach, started, taken = process.reach, time.monotonic(), False
        if reach.may_learn():
            reach.learn(process.ask({"op": "export", "addresses": reach.unknown}, seconds).get("allocations"))
            process.halt()
            self.look()
            taken = self.take(reach.take(process.number(), count))
        if not taken:
            self.changed_inputs = process.arena.find_changed(contents)  # which are overwritten now
            self.copy_outputs(process, count, seconds)
            self.take(process.arena.sets[:count])
        took = time.monotonic() - started
        process.stop()
        return took

    def copy_outputs(self, process: Process, count: int, seconds: float) -> None:
        """Has the process copy them into the shared buffers, where what was not read in its call is not there any more."""
        if not self.shares_inputs:
            process.arena.wipe(count)
            self.synchronize()
        process.call(native.COPY, 0, count, seconds)
        process.halt()
        self.look()

    def put_aside(self, sets: list[BufferSet]) -> list[BufferSet]:
        """Copies of what a row gave, or itself where that is too large."""
        self.is_aside = self.layout.set_bytes * len(sets) <= self.sets_bytes
        if not self.is_aside:
            return sets
        try:
            copies = [BufferSet([], [x.clone() for x in one.outputs]) for one in sets]
        except OUT_OF_MEMORY:
            self.is_aside = False
            return sets
        self.synchronize()
        return copies

    def sample(self, sets: list[BufferSet]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Elements of every output at places that nobody knows, with those places."""
        result = []
        for one in sets:
            for x in one.outputs:
                places = torch.randint(0, max(1, x.numel()), (min(SAMPLES, x.numel()),), generator=self.places,
                                       device=x.device)
                result.append((places, x.reshape(-1)[places]))
        self.synchronize()
        return result

    def calibrate(self, process: Process, seconds: float, contents: list[list[Any]]) -> int:
        """How many calls a row has: long against the clock's own noise, within the sets that there are."""
        target = 2e-3 if self.device == "cuda" else 20e-3

        def calls(count: int) -> float:
            return min([self.row(process, count, seconds, contents[:count]).calls for _ in range(4)][1:])

        def fitting(one: float) -> int:
            return max(1, min(self.layout.sets, int(target / max(one, 1e-6))))

        first = calls(1)
        several = fitting(first)
        if self.device == "cuda" and several > 1:  # a row of any length takes what the GPU needs to turn to its process
            first = min(first, (calls(several) - first) / (several - 1))
        return fitting(first)

    def learn_costs(self, process: Process, count: int, seconds: float, contents: list[list[Any]],
                    strict: bool = False, is_gated: bool = False) -> list[float]:
        """What a row of the baseline takes besides its calls: when it is none of theirs, and as a part of them. Returns the
        seconds of the rows' flushes. Raises Fault and Gateless."""
        def rows_of(length: int) -> list[Row]:
            result = []
            for _ in range(LEARNING_ROWS):
                process.arena.poison(length)  # as before the rows to come: caches are written back then, while contents come
                result.append(self.row(process, length, seconds, contents[:length], is_gated))
            return result

        rows = rows_of(count)
        self.call_seconds = min(x.calls for x in rows[1:]) / count
        empty = rows_of(0)
        short = rows_of(max(1, count // SHORT)) if count > 1 and self.device == "cuda" else []
        self.known_fixed[is_gated] = min(_usual(empty), self.known_fixed.get(is_gated, math.inf))
        fixed = min(_fixed(rows, short, count, _usual(empty)), UNUSUAL * self.known_fixed[is_gated] + SLACK)
        besides = [x.besides for x in rows[1:]]
        known = self.known[count, is_gated] = min(min(besides), self.known.get((count, is_gated), math.inf))
        self.free = Free(fixed, statistics.median(besides) if strict else max(besides), UNUSUAL * known, strict)
        return [x.flushing for x in rows + empty + short]

    def close(self) -> None:
        """Ends the baseline and gives the memory back."""
        self.close_baseline()
        self.flush_buffer = self.decoy = self.samples = None
        self.outputs = []
        self._close_arenas()
        self.problem.models.clear()
        self.release()

    def _close_arenas(self) -> None:
        for arena in {self.arena, self.own_arena} - {None}:
            arena.close()
        self.arena = self.own_arena = None


def _usual(rows: list[Row]) -> float:
    """Seconds (median) of the calls of rows, of which the first is not like the others."""
    return statistics.median(x.calls for x in rows[1:])


def _fixed(rows: list[Row], short: list[Row], count: int, empty: float) -> float:
    """Seconds of a row that are none of its calls', from rows of two lengths: what one without calls takes, and what the
    first calls take more, which find pages and caches that were another process's."""
    if not short:
        return empty
    length = max(1, count // SHORT)
    each = (_usual(rows) - _usual(short)) / (count - length)
    return max(empty, _usual(rows) - count * each)


def has_changed(sample: list[tuple[torch.Tensor, torch.Tensor]], sets: list[BufferSet]) -> bool:
    """Whether the outputs of sets are not what a sample of them was."""
    outputs = [x for one in sets for x in one.outputs]
    return any(not compare.same_bytes(x.reshape(-1)[places], was) for x, (places, was) in zip(outputs, sample))
