"""The kernels that the GPU runs for this process, as CUPTI counts them for torch.

torch tells a thread whether it is profiled, and its Python profilers keep a flag that all can read. So counting is begun and ended
by a thread of its own, below those profilers: a model that asks torch is told no. CUPTI counts the kernels of all threads."""

import _thread
import threading
from typing import Any, Optional

# Taken before anything is loaded that could replace them.
from torch._C._autograd import _disable_profiler, _enable_profiler, _prepare_profiler
from torch._C._profiler import _ExperimentalConfig
from torch.autograd import ProfilerActivity, ProfilerConfig, ProfilerState

CALLS = 3  # that are counted, at most
MOST_KERNELS = 100
MOST_CHARACTERS = 300  # of a name


class Count:
    """From start() to stop(). Thread safety: none."""

    def __init__(self, activity: ProfilerActivity = ProfilerActivity.CUDA):
        self.activity = activity
        self.begun, self.asked, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.events: list[Any] = []
        self.failed: Optional[BaseException] = None

    def start(self) -> None:
        """Raises what torch says where it cannot count."""
        _thread.start_new_thread(self._count, ())  # which threading.enumerate() does not tell
        self.begun.wait()
        self._raise_failed()

    def stop(self) -> list[list[Any]]:
        """[[name, microseconds]] of the kernels of calls that are over, those that took longest first. Raises likewise."""
        self.asked.set()
        self.ended.wait()
        self._raise_failed()
        found: dict[str, float] = {}
        for event in self.events:
            if "CUDA" in str(event.device_type()):
                name = event.name()[:MOST_CHARACTERS]
                found[name] = found.get(name, 0.0) + microseconds_of(event)
        return [[name, us] for name, us in sorted(found.items(), key=lambda x: -x[1])[:MOST_KERNELS]]

    def _count(self) -> None:
        try:
            config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False, _ExperimentalConfig())
            _prepare_profiler(config, {self.activity})
            _enable_profiler(config, {self.activity})
            self.begun.set()
            self.asked.wait()
            self.events = _disable_profiler().events()
        except BaseException as problem:  # who waits has it
            self.failed = problem
        self.begun.set()
        self.ended.set()

    def _raise_failed(self) -> None:
        if self.failed is not None:
            raise self.failed


def microseconds_of(event: Any) -> float:
    """Of an event, by any torch: since 2.4 they count nanoseconds."""
    return event.duration_ns() / 1000 if hasattr(event, "duration_ns") else float(event.duration_us())


latest = Count()  # of this process


def start() -> None:
    """Begins to count. Raises what torch says where it cannot."""
    global latest
    latest = Count()
    latest.start()


def stop() -> list[list[Any]]:
    """What Count.stop() says of the count that was begun last."""
    return latest.stop()
