"""Whether the GPU is at rest while the candidate is timed, and who it is that works there when it is not."""

import statistics
import time
from typing import Callable, Iterable

from kernelmill_torch.faults import Fault
from kernelmill_torch.judged import Judged

RETAKES = 3
ALONE_SECONDS = 1.0  # in which who uses the GPU now and then would be seen
ALONE_TRIES = 3  # such times: what a candidate leaves behind (a driver that tidies up, heat) ends in one of them
SELDOM = 8  # one flush in so many is long on a GPU that nobody else uses, by the doing of a busy core
BASELINE_SECONDS = 20.0


class Quiet(Judged):
    row_length = 0

    def quietly(self, work: Callable[[], Iterable[list[float]]]) -> None:
        """Does work which returns the seconds of flushes, of one or more kinds, again where those of a kind say that somebody
        had the GPU. If it recurs, or goes on until the candidate is ended, and not without it, it was the candidate; else
        nobody can be timed now. Both are said of the same measure: half of the flushes of some rows. Raises Fault."""
        for _ in range(RETAKES):
            started = time.monotonic()
            flushes = work()
            if not self.are_long(flushes):
                return
            usual = max(map(statistics.median, filter(None, flushes)))
            if not self.bench.flushes_settle():
                break
            if self.deadline - time.monotonic() < 2 * (time.monotonic() - started) + ALONE_SECONDS:
                raise Fault("infrastructure", "gpu_contended", "somebody used the GPU until there was no time left")
        is_there = self.process is not None
        if is_there:
            process, self.process = self.process, None
            process.close()
            if process.is_working:
                self.background_work(self.long_flush(usual, "and the candidate is still at work on its end"))
        if not is_there or not any(self.bench.flushes_settle() and self.is_quiet_alone() for _ in range(ALONE_TRIES)):
            raise Fault("infrastructure", "gpu_disturbed", "somebody else uses the GPU, also without the candidate")
        self.background_work(self.long_flush(usual, "until the candidate was ended"))

    def are_long(self, flushes: Iterable[list[float]]) -> bool:
        """Whether half of the flushes of a kind are."""
        return any(kind and statistics.median(kind) > self.bench.longest_flush() for kind in flushes)

    def is_quiet_alone(self) -> bool:
        """Whether rows of the baseline find the GPU at rest for a while, now that there is no candidate: in no rows half of the
        flushes are long, and of all few."""
        bench, longest = self.bench, self.bench.longest_flush()
        until = time.monotonic() + ALONE_SECONDS
        index = long = count = 0
        while count == 0 or time.monotonic() < until:  # nobody is blamed without a look, however busy the machine is
            contents = bench.draw([self.number("alone", index + i) for i in range(self.row_length)])
            index += self.row_length
            try:
                flushes = bench.learn_costs(bench.baseline, self.row_length, BASELINE_SECONDS, contents)
            except Fault:
                return False
            if self.are_long([flushes]):
                return False
            long += sum(x > longest for x in flushes)
            count += len(flushes)
        return long <= 1 + count // SELDOM

    def long_flush(self, seconds: float, when: str) -> str:
        return (
            f"a flush of the cache before calls took {seconds * 1e3:.3f} ms instead of "
            f"{self.bench.usual_flush * 1e3:.3f} ms, {when}"
        )

    def background_work(self, evidence: str) -> None:
        """Raises Fault, the candidate's."""
        self.find("background_work", "critical", evidence)
        raise Fault("candidate", "integrity", evidence)
