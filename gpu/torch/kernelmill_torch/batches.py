"""Batches of calls, as they were seen from outside. On a GPU all calls are queued; then inputs come and caches are flushed, and the GPU
releases the batch as the last act of that. It is over when samples of all outputs are there. Which batches come, and what they
say, is a matter of gpu/timing: here is only who makes them.

Calls that cannot be queued are made when their inputs are there, and timed with their launches. On a CPU inputs come while the
process stands still, and the clock runs while it makes its calls."""

import array
import contextlib
import math
import os
import random
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional

import torch

from kernelmill_torch import native
from kernelmill_torch.bench import Bench
from kernelmill_torch.buffers import BufferSet, extent_of
from kernelmill_torch.contents import OWN
from kernelmill_torch.faults import Fault
from kernelmill_torch.judged import Judged
from kernelmill_torch.pool import Pool
from kernelmill_torch.processes import SPIN, SPIN_AWAKE, Process
from kernelmill_torch.stillness import scheduled

BASELINE, CANDIDATE = "baseline", "candidate"
BASELINE_SECONDS = 20.0  # that a batch of the baseline may take
MODULE_SECONDS = 60.0  # the same of one that may compile in its first call
CALL_SECONDS = 5.0  # the same of a candidate, beside a hundred times the baseline's
QUEUE_SECONDS = 0.05  # in which calls are queued that do not wait for the GPU
QUEUE_TRIES = 3  # of all of a candidate's, before its calls count as such that cannot be queued
LEARNING_TRIES = 6  # batches whose outputs lie where the referee did not know of
WAITED_SECONDS, WAITED_SHARE = 2e-5, 0.01  # for a core, by which a batch is disturbed
HOST_WAITED_SECONDS, HOST_WAITED_SHARE = 2e-4, 0.02  # the same of calls on a CPU
MOST_EXCUSED = 12  # batches of an evaluation on a CPU: on a busy machine what was disturbed counts in the end
FIRST_CALLS = 2  # of the baseline, on a CPU
SAMPLED = 2048  # bytes of each output and call
SPAN = 100  # times the baseline's time, after which a candidate's batch is given up


@dataclass
class Order:
    """What a batch is to be: so many calls at most, on patterns of inputs in turn. Batches of a number have identical inputs."""

    patterns: list[str]
    calls: int
    number: int
    apart: bool = False  # each call's work begins when that of the call before is over


@dataclass
class Sample:
    """A batch, seconds; as timing::batch_sample."""

    calls: int
    fill: float = 0.0
    out: float = 0.0
    inside: float = 0.0
    disturbed: bool = False
    has_waited: bool = False  # its process or the referee, for a core, made again or not
    waited: float = 0.0  # for a core, of the referee, before its clock ran
    started: float = 0.0

    def begin(self) -> None:
        self.waited, self.started = waited_for_core(), time.monotonic()

    def tell(self, watch: native.Watch) -> None:
        self.end(watch.released, watch.sampled)

    def end(self, released: float, seen: float) -> None:
        """Its inputs were there, and its outputs were seen."""
        self.fill, self.out = released - self.started, seen - released
        self.disturbed = waited_for_core() - self.waited > max(WAITED_SECONDS, WAITED_SHARE * self.out)
        self.has_waited = self.disturbed

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("calls", "fill", "out", "inside", "disturbed", "has_waited")}


@dataclass
class Contents:
    """Inputs of a batch, and what either side gave."""

    order: Order
    kinds: list[str]  # by call
    drawn: list[list[Any]]  # by call
    seed: int  # of generators
    outputs: dict[str, list[BufferSet]] = field(default_factory=dict)


class NotQueued(Exception):
    """The process waited for the GPU before all calls were queued."""


class OutOfReach(Exception):
    """Outputs lie where the referee could not read them; it may now."""


class Side:
    """Baseline or candidate: how its batches are made."""

    def __init__(self, process: Process, is_direct: bool):
        self.process, self.is_direct = process, is_direct
        self.is_copied = False  # whether outputs are copied into the shared buffers, as a part of the batch
        self.most_queued = math.inf  # calls
        self.not_queued = self.out_of_reach = 0  # batches, one after the other
        self.is_warm = False


class Batches:
    """Of one bench. `judgement` is there while a candidate is."""

    def __init__(self, bench: Bench, pool: Pool, await_ended: Callable[[], None], is_direct: bool):
        self.await_ended, self.is_settled = await_ended, False
        self.bench, self.pool, self.lib, self.is_direct = bench, pool, bench.lib, is_direct or bench.is_random
        self.judgement: Optional[Judged] = None
        self.sides: dict[str, Side] = {}
        self.latest: Optional[Contents] = None
        self.secret = random.SystemRandom()
        self.latest_watch: Optional[native.Watch] = None
        self.stretches: Optional[torch.Tensor] = None  # of outputs, that are sampled
        self.samples: list[torch.Tensor] = []  # when the batch was over, and later
        self.call_seconds = 0.0  # of the baseline
        self.waited = {BASELINE: 0, CANDIDATE: 0}  # batches that waited for a core, on a CPU
        self.changed_inputs: list[int] = []  # of the latest batch on a CPU
        self.cores = sorted(os.sched_getaffinity(0))

    def open(self) -> None:
        """Has the baseline up, and its calls warm. Raises Fault."""
        if self.bench.baseline_seed is None:
            self.bench.use_parameters(self.secret.getrandbits(62))
        self.is_settled = False
        side = self.side(BASELINE)
        if not side.is_warm:
            sets = self.bench.layout.sets
            self.make_directly(BASELINE, side, sets if self.bench.device == "cuda" else min(sets, FIRST_CALLS))
            side.is_warm = True

    def side(self, name: str) -> Side:
        """Raises Fault."""
        bench = self.bench
        process = (
            bench.start_baseline(self.pool, bench.baseline_seed, BASELINE_SECONDS)
            if name == BASELINE
            else self.judgement.process
        )
        if name not in self.sides or self.sides[name].process is not process:
            self.sides[name] = Side(process, self.is_direct)
        return self.sides[name]

    def settle(self) -> None:
        """Returns when nothing is being started or ended beside, and the GPU's clock is up. Raises Fault."""
        if self.is_settled:
            return
        self.await_ended()
        self.pool.settle()
        self.bench.rouse()
        self.is_settled = True

    def make(self, name: str, order: Order) -> dict[str, Any]:
        """A batch, checked once both sides have made it. Raises Fault."""
        self.settle()
        try:
            sample = self.made(name, order)
        except Fault as e:
            if name == BASELINE:
                raise self.fault_of_baseline(e) from None
            raise
        if self.latest is not None and len(self.latest.outputs) == 2 and not self.is_right():
            sample.disturbed = True
        return {**sample.to_json(), "direct": self.side(name).is_direct}

    def fault_of_baseline(self, e: Fault) -> Fault:
        """That the baseline failed is the problem's fault or ours, unless it works without the candidate: see blame.py."""
        self.bench.close_baseline()
        return self.bench.blame_problem(e)

    def made(self, name: str, order: Order) -> Sample:
        """Raises Fault."""
        side = self.side(name)
        while True:
            contents = self.contents_of(order, side)
            try:
                sample = self.run(name, side, contents)
            except NotQueued:
                side.not_queued += 1
                if side.not_queued >= QUEUE_TRIES:
                    side.is_direct = True
                if len(contents.drawn) > 1:  # there may be more launches than the queue has places
                    side.most_queued = len(contents.drawn) * 3 // 4
            except OutOfReach:
                side.out_of_reach += 1
                if side.out_of_reach >= LEARNING_TRIES and not side.is_copied:
                    self.copy_outputs(side)
                if side.out_of_reach > 2 * LEARNING_TRIES:
                    raise Fault("infrastructure", "python_failed", "failed to read outputs of a batch") from None
            else:
                if name == BASELINE and sample.inside > 0:
                    self.call_seconds = sample.inside / sample.calls
                if name == BASELINE or side.is_direct:
                    side.not_queued = 0
                side.out_of_reach = 0
                return sample
            self.latest = None
            if order.number >= 0 and self.judgement is not None:
                # Both sides are made again: a batch whose other side had other inputs would not be compared with it.
                return Sample(len(contents.drawn), disturbed=True)

    def make_directly(self, name: str, side: Side, calls: int) -> None:
        """A batch of which nothing is told: what happens in first calls would have to wait for the gate. Raises Fault."""
        was, side.is_direct = side.is_direct, True
        self.latest = None
        self.made(name, Order([OWN], calls, -1))
        side.is_direct, self.latest = was, None

    def copy_outputs(self, side: Side) -> None:
        """From now on they are copied to where they can be read, in time that is the batch's. Raises Fault."""
        side.process.go_on()
        side.process.ask({"op": "copy", "into": "arena"}, BASELINE_SECONDS)
        side.is_copied = True
        if self.judgement is not None and side.process is self.judgement.process:
            self.judgement.find(
                "outputs_out_of_reach",
                "warning",
                "the outputs cannot be read where they lie: their memory is freed in between, or not of cudaMalloc. "
                "Copies of them are a part of each call",
            )

    # -- contents -----------------------------------------------------------------------------------

    def contents_of(self, order: Order, side: Side) -> Contents:
        """As the other side had them, or new ones. The number of calls is drawn: a candidate does not know it."""
        if self.latest is not None and self.latest.order == order:
            return self.latest
        bench, most = self.bench, min(order.calls, self.bench.layout.sets)
        if not side.is_direct:
            most = int(min(most, side.most_queued))
        least = min(len(order.patterns), bench.layout.sets)  # each has a call at least, however long that is
        count = max(least, self.secret.randint(max(1, most * 3 // 4), most))
        kinds = [order.patterns[i * len(order.patterns) // count] for i in range(count)]
        self.latest = None  # whose memory the next ones need
        bench.make_room()
        for kind in dict.fromkeys(kinds):
            bench.prepare_kind(kind)
        drawn = [bench.draw([self.secret.getrandbits(62)], kind)[0] for kind in kinds]
        seed = self.secret.getrandbits(62) | 1 if bench.is_random else 0
        self.latest = Contents(order, kinds, drawn, seed)
        return self.latest

    # -- one batch ----------------------------------------------------------------------------------

    def run(self, name: str, side: Side, contents: Contents) -> Sample:
        """Raises Fault, NotQueued and OutOfReach. The candidate stands still after that."""
        process, arena = side.process, side.process.arena
        count = len(contents.drawn)
        if name == BASELINE:
            seconds = BASELINE_SECONDS if self.bench.baseline_tells else MODULE_SECONDS
        else:
            seconds = min(self.judgement.left(), CALL_SECONDS + SPAN * self.call_seconds * count)
        arena.move()
        if side.is_copied:
            arena.poison(count)
        process.place = arena.place
        sample = Sample(count)
        try:
            if self.bench.device == "cpu":
                outputs = self.run_on_host(name, side, contents, seconds, sample)
            elif side.is_direct:
                outputs = self.run_directly(side, contents, seconds, sample)
            else:
                outputs = self.run_queued(name, side, contents, seconds, sample)
        finally:
            if name == CANDIDATE and process.alive() and not process.stopped:
                process.stop()
        if name == BASELINE or side.is_direct:
            sample.inside = self.lib.km_batch_inside(process.page)
        if outputs is None:
            self.reach_outputs(process, seconds)
            raise OutOfReach
        if name == CANDIDATE:
            self.look_at_inputs(side, contents)
        contents.outputs[name] = outputs
        return sample

    def run_queued(
        self, name: str, side: Side, contents: Contents, seconds: float, sample: Sample
    ) -> Optional[list[BufferSet]]:
        process, count = side.process, sample.calls
        patience = QUEUE_SECONDS + 4 * self.call_seconds * count
        if not process.queue_batch(count, patience, seconds, contents.seed, contents.order.apart):
            process.finish_batch(seconds)
            raise NotQueued
        if name == CANDIDATE:
            process.stop()
        outputs = self.outputs_of(side, count)
        watch = self.watch_of(process, outputs, seconds)
        self.fill(process, contents, sample)
        self.expect(process, self.lib.km_batch_watch(process.page, process.pidfd, watch), seconds)
        sample.tell(watch)
        if name == BASELINE:
            process.finish_batch(seconds)
        return outputs

    def run_directly(self, side: Side, contents: Contents, seconds: float, sample: Sample) -> Optional[list[BufferSet]]:
        """Calls before it bring the process to where its first launch finds it, on inputs that never come again."""
        process, count = side.process, sample.calls
        process.arena.fill([self.bench.draw([self.secret.getrandbits(62)])[0]])
        self.bench.synchronize()
        process.enter_page(seconds)
        process.call(native.WARM, 0, 1, seconds, SPIN_AWAKE)
        watch = self.watch_of(process, None, seconds)
        watch.number += 1  # that comes next
        self.fill(process, contents, sample)
        self.expect(process, self.lib.km_batch_release(process.pidfd, watch), seconds)
        process.make_batch(count, seconds, contents.seed, contents.order.apart)
        outputs = self.outputs_of(side, count)
        self.look_at(watch, outputs)
        self.expect(process, self.lib.km_batch_sample(watch), seconds)
        sample.tell(watch)
        return outputs

    def run_on_host(
        self, name: str, side: Side, contents: Contents, seconds: float, sample: Sample
    ) -> Optional[list[BufferSet]]:
        """What the process works besides its calls, from when inputs are there until it stands still again, is the `fill`."""
        process, count = side.process, sample.calls
        process.stop()
        process.arena.fill(contents.drawn)
        self.bench.flush()
        worked, waited = process.worked(), waited_for_core(process.number())
        process.enter_page(seconds)
        with self.cores_apart(process):
            process.call(native.WAKE, 0, 0, seconds)
            began = process.worked()
            sample.out = process.make_batch(count, seconds, contents.seed, contents.order.apart, SPIN)
            ended = process.worked()
            process.stop()
        sample.fill = began - worked + process.worked() - ended
        waited = waited_for_core(process.number()) - waited
        sample.has_waited = waited > max(HOST_WAITED_SECONDS, HOST_WAITED_SHARE * sample.out)
        sample.disturbed = sample.has_waited and self.is_excused(name)
        self.changed_inputs = process.arena.find_changed(contents.drawn)
        if not side.is_copied and not self.bench.shares_inputs:
            process.arena.wipe(count)  # what returned a view of them, mapped elsewhere, has rubbish
        return self.outputs_of(side, count)

    @contextlib.contextmanager
    def cores_apart(self, process: Process) -> Iterator[None]:
        """The process's first thread has a core that neither this thread nor its others have: those that are woken at one time are
        put on one core, and take turns there. Threads that it starts in its calls have all cores."""
        if len(self.cores) > 1:
            os.sched_setaffinity(0, self.cores[-1:])
            process.spread_threads(self.cores)
        try:
            yield
        finally:
            os.sched_setaffinity(0, self.cores)

    def is_excused(self, name: str) -> bool:
        """Whether a batch on a CPU is made again because its process waited for a core. A candidate that waits by itself is excused
        as often as the baseline, and as chance has it."""
        self.waited[name] += 1
        known, own = self.waited[BASELINE], self.waited[CANDIDATE]
        is_excused = name == BASELINE or own <= known + 2 * math.sqrt(known + 1) + 1
        return is_excused and known + own <= MOST_EXCUSED

    @staticmethod
    def expect(process: Process, code: int, seconds: float) -> None:
        """Raises Fault where a batch did not come to its end."""
        if code == native.ENDED:
            raise process.ended()
        if code == native.TIMED_OUT:
            process.kill()
            raise process.fault("timed_out", f"was still busy after {seconds:.1f} s")
        if code != 0:
            raise Fault("infrastructure", "gpu_lost", f"failed to time a batch: the driver says {code}")

    def fill(self, process: Process, contents: Contents, sample: Sample) -> None:
        """Puts inputs there and flushes caches, without waiting for that."""
        self.lib.km_gpu_unpin()
        self.bench.synchronize()
        sample.begin()
        process.arena.fill(contents.drawn)
        self.bench.push_out(sample.calls)

    # -- outputs ------------------------------------------------------------------------------------

    def outputs_of(self, side: Side, count: int) -> Optional[list[BufferSet]]:
        process = side.process
        if side.is_copied:
            return process.arena.sets[:count]
        found = process.reach.take(process.number(), count)
        gives_inputs = process.reach.is_shared and not self.bench.shares_inputs
        if gives_inputs and self.judgement is not None and process is self.judgement.process:
            self.judgement.find(
                "output_is_input",
                "critical",
                "an output lies in the memory of the inputs; the problem's own model writes a new tensor",
            )
        return found

    def reach_outputs(self, process: Process, seconds: float) -> None:
        reach = process.reach
        if reach.may_learn():
            said = process.ask({"op": "export", "addresses": reach.unknown}, seconds)
            reach.learn(said.get("allocations"), said.get("others"))

    def watch_of(self, process: Process, outputs: Optional[list[BufferSet]], seconds: float) -> native.Watch:
        """How a batch is released, and its outputs are sampled at secret places: what is written later cannot hide."""
        watch = native.Watch(word=process.open_word, number=process.batches, bytes=SAMPLED, seconds=seconds)
        watch.seed = self.secret.getrandbits(32)
        self.look_at(watch, outputs)
        self.latest_watch = watch
        return watch

    def look_at(self, watch: native.Watch, outputs: Optional[list[BufferSet]]) -> None:
        words = array.array("q")
        for one in outputs or []:
            for x in one.outputs:
                words.extend((x.data_ptr(), extent_of(x) * x.element_size()))
        watch.outputs = len(words) // 2 or 1
        self.stretches = torch.frombuffer(words or array.array("q", (0, 0)), dtype=torch.int64).to("cuda")
        self.samples = [torch.empty(watch.outputs * SAMPLED, dtype=torch.uint8, device="cuda") for _ in range(2)]
        watch.stretches, watch.samples = self.stretches.data_ptr(), self.samples[0].data_ptr()

    def has_changed(self, process: Process) -> bool:
        """Whether outputs are not what was sampled when the batch was over."""
        watch = self.latest_watch
        watch.samples = self.samples[1].data_ptr()
        self.expect(process, self.lib.km_batch_sample(watch), 0.0)
        return not torch.equal(*self.samples)

    def look_at_inputs(self, side: Side, contents: Contents) -> None:
        """Of one secret call: a candidate that changes inputs gains by doing it in all."""
        if self.bench.device == "cpu":
            self.judgement.blame_for_inputs(self.changed_inputs)
            return
        if self.has_changed(side.process):
            self.judgement.find("late_write", "critical", "outputs changed after the candidate said that it was done")
        if contents.order.calls == 1 < self.bench.layout.sets:
            return  # a call alone is none that it knows from others
        i = self.secret.randrange(len(contents.drawn))
        self.judgement.blame_for_inputs(side.process.arena.find_changed(contents.drawn[i : i + 1], i))

    # -- right or wrong -----------------------------------------------------------------------------

    def is_right(self) -> bool:
        """Whether the candidate's outputs of the latest batch are. Where they are not, by what need not be the candidate's fault, it is made again.
        Raises Fault."""
        contents, side = self.latest, self.sides[CANDIDATE]
        self.latest = None
        is_known = self.bench.baseline_tells and not self.bench.shares_arena
        wrong = self.wrong_kinds(contents, contents.outputs[BASELINE] if is_known else None)
        if not wrong:
            return True
        if side.process.reach.moved():
            return False
        if not side.is_direct:  # a stream of its own may not have waited
            side.is_direct = True
            return False
        kind, bad = wrong
        raise self.judgement.wrong_in_time(bad, is_tried=kind in self.judgement.tried)

    def wrong_kinds(self, contents: Contents, known: Optional[list[BufferSet]]) -> Optional[tuple[str, float]]:
        """The first kind on which outputs are wrong, and how many elements."""
        got = contents.outputs[CANDIDATE]
        for kind in dict.fromkeys(contents.kinds):
            calls = [i for i, x in enumerate(contents.kinds) if x == kind]
            self.judgement.kind = kind
            wanted = [y for i in calls for y in known[i].outputs] if known else None
            if wanted and self.are_near(kind, [y for i in calls for y in got[i].outputs], wanted):
                if len(calls) == 1 < self.bench.layout.sets:
                    continue  # a call alone is none that a candidate knows from the first of several
                bad = self.judgement.wrong_of_some([contents.drawn[i] for i in calls], [got[i] for i in calls], wanted)
                if bad:
                    return kind, bad
                continue
            bad = self.judgement.count_bad(
                [contents.drawn[i] for i in calls], [got[i] for i in calls], contents.seed, wanted
            )
            if bad:
                return kind, bad
        return None

    def are_near(self, kind: str, got: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
        """Whether all outputs are within their bounds, by one look at all of them. False says nothing: there are bounds that it does
        not know."""
        x = self.judgement
        name = COMPARED.get(wanted[0].dtype)
        outputs = list(zip(got, wanted))
        plain = all(
            a.dtype == b.dtype == wanted[0].dtype and a.stride() == b.stride() and is_dense(b) for a, b in outputs
        )
        if self.bench.device != "cuda" or x.mode != "honest" or name is None or not plain:
            return False
        rules = x.rules_of_kind(kind)
        rules = rules * (len(wanted) // max(1, len(rules)))
        table = array.array("q")
        for (a, b), rule in zip(outputs, rules):
            table.extend((a.data_ptr(), b.data_ptr(), b.numel(), bits_of(rule.relative)))
        there = torch.frombuffer(table, dtype=torch.int64).to("cuda")
        sums = torch.zeros(2 * len(outputs), dtype=torch.float64, device="cuda")
        if self.lib.km_gpu_compare(name, there.data_ptr(), sums.data_ptr(), len(outputs)) != 0:
            return False
        known = sums.tolist()
        return all(
            beyond <= rule.relative * math.sqrt(squares / max(1, b.numel()))
            for beyond, squares, rule, (_, b) in zip(known[::2], known[1::2], rules, outputs)
        )

    def warm_up(self, calls: int) -> dict[str, Any]:
        """The candidate's first batches, of which the last is told. One that gives its outputs in memory of its own, again and
        again, so that it is right call by call and not in a row, has each call's copied, in its time. Raises Fault."""
        x = self.judgement
        self.is_settled = False  # something may have begun meanwhile
        self.waited = {BASELINE: 0, CANDIDATE: 0}
        self.settle()
        side = self.side(CANDIDATE)
        queued = not side.is_direct
        for is_direct in (False, True) if queued else (True,):
            for is_cloned in (False, True):
                side.is_direct = is_direct
                x.process.ask({"op": "copy", "into": "new" if is_cloned else ""}, x.left())
                side.is_copied = False
                sample = self.right_sample(side, calls)
                if sample is None:
                    continue
                if is_cloned:
                    x.find(
                        "outputs_in_one_place",
                        "warning",
                        "right call by call and not in a row, as outputs in one place again and again are: each "
                        "call's are copied, which takes its time; return new tensors",
                    )
                return {**sample.to_json(), "direct": side.is_direct}
        evidence = (
            "right in all trials, but wrong when it was timed, where calls follow one another, "
            "also when each call's outputs are copied at once"
        )
        x.find("wrong_when_timed", "critical", evidence)
        raise Fault(
            "candidate",
            "wrong_result",
            evidence,
            "order all work of a call on the current stream, and keep nothing that the next one overwrites",
        )

    def right_sample(self, side: Side, calls: int) -> Optional[Sample]:
        """Of a batch whose outputs are right. A first one takes its memory, and loads what it calls. Raises Fault."""
        self.make_directly(CANDIDATE, side, calls)
        order = Order([OWN], calls, -1)
        for _ in range(2):
            self.latest = None
            sample = self.made(CANDIDATE, order)
            contents, self.latest = self.latest, None
            if not self.wrong_kinds(contents, None):
                return sample
            if not side.process.reach.moved():
                return None
        return None


COMPARED = {torch.float32: b"near_f32", torch.float16: b"near_f16", torch.bfloat16: b"near_bf16"}


def is_dense(x: torch.Tensor) -> bool:
    """Whether elements lie side by side, in any order of the dimensions."""
    return 0 < x.numel() == extent_of(x)


def bits_of(x: float) -> int:
    return int.from_bytes(struct.pack("<d", x), "little")


def waited_for_core(number: int = 0) -> float:
    """Seconds that this thread, or the first one of a process, was ready and had no core."""
    return scheduled(str(number or "thread-self"))[1]
