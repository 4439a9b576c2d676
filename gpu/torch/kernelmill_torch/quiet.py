"""Whether the GPU is at rest while the candidate is timed, and who it is that works there when it is not."""

import statistics
import time
from typing import Callable, Iterable

from kernelmill_torch.faults import Fault
from kernelmill_torch.judged import Judged

RETAKES = 3
ALONE_SECONDS = 1.0  # in which who uses the GPU now and then would be seen
BASELINE_SECONDS = 20.0


class Quiet(Judged):
    row_length = 0

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
                raise Fault("infrastructure", "gpu_contended", "somebody used the GPU until there was no time left")
        is_there = self.process is not None
        if is_there:
            process, self.process = self.process, None
            process.close()
            if process.is_working:
                self.background_work(self.long_flush(usual, "and the candidate is still at work on its end"))
        if not is_there or not self.bench.flushes_settle() or not self.is_quiet_alone():
            raise Fault("infrastructure", "gpu_disturbed", "somebody else uses the GPU, also without the candidate")
        self.background_work(self.long_flush(usual, "until the candidate was ended"))

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

    def long_flush(self, seconds: float, when: str) -> str:
        return (f"a flush of the cache before calls took {seconds * 1e3:.3f} ms instead of "
                f"{self.bench.usual_flush * 1e3:.3f} ms, {when}")

    def background_work(self, evidence: str) -> None:
        """Raises Fault, the candidate's."""
        self.find("background_work", "critical", evidence)
        raise Fault("candidate", "integrity", evidence)
