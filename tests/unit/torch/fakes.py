"""Benches and processes that only say what they are told, for tests of judgements. REQUIRES: torch."""

import contextlib
import types

from kernelmill_torch import quiet
from kernelmill_torch.bench import Bench
from kernelmill_torch.faults import Fault
from kernelmill_torch.judgement import Judgement
from kernelmill_torch.rows import Gateless
from kernelmill_torch.watch import Free, Row

quiet.ALONE_SECONDS = 1e-3  # that no test waits


class Ended:
    def __init__(self):
        self.closed = self.is_working = False

    def output(self):
        return ""

    def close(self):
        self.closed = True


class FakeBench:
    """A bench whose baseline, once started again, runs or does not."""

    again = contextlib.nullcontext

    def __init__(self, alone_works):
        self.directory, self.baseline, self.baseline_seed, self.device = "problems/some", Ended(), 1, "cpu"
        self.alone_works, self.free = alone_works, Free()
        self.admitted, self.is_random = types.SimpleNamespace(others=["signs", "large"]), False
        self.can_queue = self.can_queue_rows = True

    def close_baseline(self):
        if self.baseline is not None:
            self.baseline.close()
            self.baseline = None

    def start_baseline(self, _pool, _seed, _seconds):
        self.baseline = Ended()
        return self.baseline

    def draw(self, seeds, _kind="own", _laws=()):
        return seeds

    def row(self, _process, _count, _seconds, _contents):
        if not self.alone_works:
            raise Fault("candidate", "runtime_error", "IndexError")

    def rouse(self):
        pass

    def longest_flush(self):
        return 1.0

    def blame_problem(self, e):
        return Bench.blame_problem(self, e)


def judgement(bench):
    result = Judgement(bench, None, None, {"seconds": 60, "seed": "00" * 32})
    result.process = Ended()
    return result


class WatchedProcess:
    def __init__(self, name, done):
        self.name, self.arena = (
            name,
            types.SimpleNamespace(move=lambda: None, poison=lambda _count: done.append("poison of " + name)),
        )


class WatchedBench:
    """Writes down what is done to it, and when."""

    def __init__(self, small):
        self.is_aside, self.done, self.prepared = small, [], None
        self.device, self.samples, self.free = "cpu", None if small else "samples", Free()
        self.changed_inputs, self.changes_inputs, self.spoiled = [], False, None
        self.gives_inputs, self.flushing = False, 0.5
        self.shares_arena, self.is_random = True, False
        self.baseline = WatchedProcess("baseline", self.done)
        self.contents, self.laws = [], []

    def longest_flush(self):
        return 1.0

    def make_room(self):
        self.done.append("room")

    def prepare_kind(self, kind):
        self.prepared = kind

    def draw(self, seeds, kind, laws=()):
        assert self.prepared == kind
        self.done.append("draw")
        self.kind = kind
        self.laws.append(laws)
        self.contents.append(seeds)
        return seeds

    def row(self, process, _count, _seconds, contents, _is_gated=False, seed=0, is_apart=False):
        self.seed = seed
        self.done.append(process.name)
        assert contents == self.contents[-1]
        self.outputs = ["outputs of " + process.name]
        self.changed_inputs = [0] if process.name == self.spoiled else []
        return Row(calls=1.0, flushing=self.flushing)


class BusyBench(FakeBench):
    """A flush takes at most 1 s. Given is what is at work on the GPU: by turns in what is timed,
    and while flushes are to settle."""

    def __init__(self, settles, alone=((0.5,),)):
        super().__init__(True)
        self.usual_flush, self.settles, self.alone = 0.5, settles, list(alone)
        self.known_fixed = {}

    def flushes_settle(self):
        return self.settles.pop(0) if len(self.settles) > 1 else self.settles[0]

    def learn_costs(self, _process, _count, _seconds, _contents, _is_gated=False, _times=7):
        flushes = self.alone.pop(0) if len(self.alone) > 1 else self.alone[0]
        if isinstance(flushes, Fault):
            raise flushes
        return flushes


class GatedBench(BusyBench):
    """Its baseline can queue so many calls."""

    def __init__(self, most):
        super().__init__([True] * 99)
        self.device, self.most, self.lengths = "cuda", most, []
        self.free = Free(fixed=0.0, most_fixed=1.0)
        self.call_seconds = 1e-3 / max(most, 1)  # of which a row has so many
        self.fitting = lambda one: max(1, min(most, int(1e-3 / one)))

    def learn_costs(self, _process, count, _seconds, _contents, is_gated=False, _times=7):
        self.lengths.append((count, is_gated))
        if is_gated and count > self.most:
            raise Gateless
        return [0.5]

    def learn_opening(self, _process, _seconds):
        self.lengths.append((0, True))
        return 0.0
