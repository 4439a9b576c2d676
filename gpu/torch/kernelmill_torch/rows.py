"""Rows of calls: what comes in which order, what a row gives, and what it takes besides its calls."""

import math
import statistics
import time
from typing import Any, Optional

import torch

from kernelmill_torch import compare, native
from kernelmill_torch.arena import Arena
from kernelmill_torch.buffers import BufferSet, Layout
from kernelmill_torch.faults import Fault
from kernelmill_torch.problem import OUT_OF_MEMORY
from kernelmill_torch.processes import SPIN, SPIN_AWAKE, Process
from kernelmill_torch.watch import Free, Row

LOOKS = 3
UNUSUAL = 1.5  # times what was once learned: a candidate may have made it longer
LEARNING_ROWS = 7  # of each length, of which the first is not like the others
SLACK = 6e-5  # seconds that a row may take besides its calls, more than one without calls
WARMED_SECONDS = 5e-3  # calls shorter than that are made on other contents first
WARM_CALLS = 32  # at most, while they take less than a millisecond
WARMING_SECONDS = 1e-3
QUEUE_SECONDS = 0.05  # in which calls are queued that do not wait for the GPU, and longer where their row took longer
ROW_SECONDS = 2e-3  # of calls in a row on a GPU
LONG_CALL_SECONDS = 2.5e-4  # of a call, from which on a row takes twice as long: it would have few
MOST_KEPT = 1 << 30  # bytes of a set whose contents are kept for calls before the next row
SAMPLES = 4096  # places of an output that are looked at when a row is done


class Gateless(Exception):
    """Calls cannot be queued ahead: the process waits for the GPU in one of them, or there are too many launches."""

    def __init__(self, message: str = "", category: str = ""):
        super().__init__(message)
        self.category = category  # of the fault that says so


class Rows:
    """Part of a bench, whose attributes it uses."""

    device: str
    layout: Layout
    sets_bytes: int
    lib: Any
    cache_bytes: int  # of the GPU's second level
    shares_inputs: bool  # whether outputs of the model may lie in its inputs

    def flush(self, calls: int = 0) -> float:
        """Evicts everything from the caches, before so many calls. Returns the seconds, which are more when somebody else is busy."""
        if self.device == "cuda":
            self.lib.km_gpu_unpin()
            for warm in self.flush_buffer[:64].view(torch.int64).sum, self.flush_buffer[:64].zero_:
                warm()
        self.synchronize()
        started = time.monotonic()
        if self.device == "cuda":
            # Calls write back what is left in the cache when they begin, and leave there what they wrote last: as much as that.
            self.flush_buffer.view(torch.int64).sum()
            # From here on the GPU has work, and who is at work there is waited for. That a core which waited launches 0.1 ms later, more
            # beside compilers and after long waits, is nobody's work.
            started = time.monotonic()
            self.flush_buffer[: self.layout.left_to_write(self.cache_bytes, calls)].fill_(0)
        else:
            self.flush_buffer.add_(1)
        self.synchronize()
        return time.monotonic() - started

    def push_out(self, calls: int) -> None:
        """The flush of a batch, behind the fill: without waiting. What is left in the cache to be written back is as much as calls
        leave there."""
        self.flush_buffer.view(torch.int64).sum()
        self.flush_buffer[: self.layout.left_to_write(self.cache_bytes, calls)].fill_(0)

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

    def rests(self) -> bool:
        """Whether nobody is at work now and then: of a second's flushes one in eight is long at most."""
        flushes, end = [], time.monotonic() + 1
        while time.monotonic() < end:
            flushes.append(self.flush())
        return sum(x > self.longest_flush() for x in flushes) <= 1 + len(flushes) // 8

    def reveal(self, arena: Arena, contents: list[list[Any]]) -> tuple[float, float]:
        """Puts contents where a timed process sees them, and evicts them from the caches. Returns the seconds, and those of
        the second part."""
        self.speck.add_(1)  # the GPU takes some 0.15 ms to turn from another process to this one
        self.synchronize()
        started = time.monotonic()
        arena.fill(contents)
        flushing = self.flush(len(contents))
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

    def row(
        self,
        process: Process,
        count: int,
        seconds: float,
        contents: list[list[Any]],
        is_gated: bool = False,
        seed: int = 0,
        is_apart: bool = False,
    ) -> Row:
        """One row on cold caches; `outputs` is what it gave then. Of a gated row the calls are queued before contents come, and
        their time is the GPU's alone. With a seed torch's generators begin with it when the row does. `is_apart`: each call's
        work begins when that of the call before is over, whatever streams they use. Raises Fault and Gateless; the process stands
        still after that, too: memory is given back then, and contents are drawn."""
        try:
            return self.timed_row(process, count, seconds, contents, is_gated, seed, is_apart)
        except Exception:
            if process.alive():
                process.stop()
            raise

    def timed_row(
        self,
        process: Process,
        count: int,
        seconds: float,
        contents: list[list[Any]],
        is_gated: bool,
        seed: int,
        is_apart: bool,
    ) -> Row:
        """See row().

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
        if (
            contents and self.layout.set_bytes <= MOST_KEPT
        ):  # memory of large ones is needed when their outputs are checked
            self.decoy = contents[0]  # nobody is asked for the same again
        if process.reach.is_fleeting:
            process.reach.forget()
        if not on_gpu:
            _, flushing = self.reveal(process.arena, contents)
        self.wake_core()
        waking, awake = process.wake(seconds)
        if on_gpu:
            waking = 0.0
            if not is_gated:
                # Python that was stopped takes 0.1 to 0.3 ms more for its first launches, and after one call still 0.05 ms, which
                # is no work of its calls. It stays awake until contents are there: who sleeps meanwhile takes as much again.
                process.call(native.WARM, 0, self.warm_calls() if is_warmed else 0, seconds, SPIN_AWAKE)
            is_queued = is_gated and process.queue(
                count, self.queue_seconds(count), seed, native.QUEUE_APART if is_apart else native.QUEUE
            )
            revealing, flushing = self.reveal(process.arena, contents)
            if not is_gated:
                # The GPU takes 0.16 ms to turn to this process; who does more than that here is seen in what it takes.
                turning = process.call(native.TURN, 0, 0, seconds)
        if on_gpu and is_gated:
            calls = self.open_gate(process, is_queued, seconds)
        else:
            # A referee that sleeps when a row of some milliseconds is done is woken 0.05 to 0.1 ms later, and learns of rows without
            # calls, which are over before, that this takes nothing.
            calls = process.call(
                native.CALL_APART if is_apart else native.CALL, 0, count, seconds, SPIN_AWAKE if on_gpu else SPIN, seed
            )
        started = time.monotonic()
        process.halt()
        looking = self.look()
        if not on_gpu:
            process.stop()  # then it does nothing, and takes no time
            taking = time.monotonic() - started
            self.take_inputs_back(process, count, contents)
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

    def warm_calls(self) -> int:
        known = self.call_seconds
        return max(1, min(WARM_CALLS, int(WARMING_SECONDS / known))) if known else 1

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
            raise Gateless(e.message, e.category) from None  # in no variable, which would hold the row's contents
        raise Gateless("a call waits for the GPU")

    def take(self, found: Optional[list[BufferSet]]) -> bool:
        """Puts the outputs of a row aside, or takes samples of what is too large for that. False where there are none."""
        if found is None:
            return False
        self.outputs = self.put_aside(found)
        self.samples = None if self.is_aside else self.sample(found)
        return True

    def take_inputs_back(self, process: Process, count: int, contents: list[list[Any]]) -> None:
        """Who mapped them once more, elsewhere, may have returned a view of them: it reads rubbish from now on."""
        if self.shares_inputs:
            return
        self.changed_inputs = process.arena.find_changed(contents)
        process.arena.wipe(count)

    def fetch(self, process: Process, count: int, seconds: float, contents: list[list[Any]]) -> float:
        """Takes the outputs of a row for which the process has to go on. Returns the seconds. Raises Fault."""
        reach, started, taken = process.reach, time.monotonic(), False
        if reach.may_learn():
            reach.learn(process.ask({"op": "export", "addresses": reach.unknown}, seconds).get("allocations"))
            process.halt()
            self.look()
            taken = self.take(reach.take(process.number(), count))
        if not taken:
            if self.changed_inputs is None:
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
                places = torch.randint(
                    0, max(1, x.numel()), (min(SAMPLES, x.numel()),), generator=self.places, device=x.device
                )
                result.append((places, x.reshape(-1)[places]))
        self.synchronize()
        return result

    def calibrate(self, process: Process, seconds: float, contents: list[list[Any]]) -> int:
        """How many calls a row has: long against the clock's own noise, within the sets that there are."""

        def calls(count: int) -> float:
            return min([self.row(process, count, seconds, contents[:count]).calls for _ in range(4)][1:])

        first = calls(1)
        several = self.fitting(first)
        if self.device == "cuda" and several > 1:  # a row of any length takes what the GPU needs to turn to its process
            first = min(first, (calls(several) - first) / (several - 1))
        return self.fitting(first)

    def fitting(self, one: float) -> int:
        """Calls of a row by the seconds of one."""
        # What a rested process takes for its first launch, 0.1 to 0.2 ms of some, is a part of few calls' time.
        wanted = ROW_SECONDS * (2 if one > LONG_CALL_SECONDS else 1) if self.device == "cuda" else 20e-3
        return max(1, min(self.layout.sets, int(wanted / max(one, 1e-6))))

    def learn_costs(
        self,
        process: Process,
        count: int,
        seconds: float,
        contents: list[list[Any]],
        is_gated: bool = False,
        times: int = LEARNING_ROWS,
    ) -> list[float]:
        """What a row of the baseline takes besides its calls: when it has none, and as a part of them. So many rows of either
        are made. Returns the seconds of the rows' flushes. Raises Fault and Gateless."""

        def rows_of(length: int) -> list[Row]:
            result = []
            for _ in range(times):
                process.arena.poison(
                    length
                )  # as before the rows to come: caches are written back then, while contents come
                result.append(self.row(process, length, seconds, contents[:length], is_gated))
            return result

        rows = rows_of(count)
        self.call_seconds = min(x.calls for x in rows[1:]) / count
        empty = rows_of(0)
        fixed = statistics.median(x.calls for x in empty[1:])
        least = self.known_fixed[is_gated] = min(fixed, self.known_fixed.get(is_gated, math.inf))
        most_fixed = UNUSUAL * least + SLACK
        besides = [x.besides for x in rows[1:]]
        known = self.known[count, is_gated] = min(min(besides), self.known.get((count, is_gated), math.inf))
        self.free = Free(min(fixed, most_fixed), most_fixed, max(besides), UNUSUAL * known)
        return [x.flushing for x in rows + empty]

    def learn_opening(self, process: Process, seconds: float, times: int = LEARNING_ROWS) -> float:
        """Seconds of a row behind the gate that are no call's, most of them the GPU's turn to the process: of rows of the baseline
        without calls, and not much more than such took before. What a candidate left on the GPU makes them longer, and the flush
        before them, too: such rows do not count. Raises Fault and Gateless."""
        rows = [self.row(process, 0, seconds, [], True) for _ in range(times)]
        known = self.known_fixed.get(True, math.inf)
        quiet = [x.calls for x in rows[1:] if x.flushing <= self.longest_flush()]
        if not quiet and known < math.inf:
            return known
        found = statistics.median(quiet or [x.calls for x in rows[1:]])
        least = self.known_fixed[True] = min(found, known)
        return min(found, UNUSUAL * least)


def has_changed(sample: list[tuple[torch.Tensor, torch.Tensor]], sets: list[BufferSet]) -> bool:
    """Whether the outputs of sets are not what a sample of them was."""
    outputs = [x for one in sets for x in one.outputs]
    return any(not compare.same_bytes(x.reshape(-1)[places], was) for x, (places, was) in zip(outputs, sample))
