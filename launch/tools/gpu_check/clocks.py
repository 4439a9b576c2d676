"""The outside clock beside CUDA events in a plain process."""

import functools
import os
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from gpu_check import common
from gpu_check.common import (
    EVENT_TIMER,
    OUT,
    VERDICTS,
    baseline,
    environment,
    honest_set,
    judge,
    name_of_repeated,
    promise,
    repeated,
    say,
    task_ids,
    task_spec,
)

WITHIN = 0.02
LEAST_MS = 0.05
LEAST_SHARE = 0.5  # of the kernels must be judged: one that agrees proves nothing of the others
USUALLY = {"native": 40, "plain": 30, "device": 110}  # seconds of each step
SITTINGS = 3  # plain processes: two differ by some percent, by where their memory lies
SITTING_CALLS = 20


def sizes_of(task):
    spec = task_spec(task)
    scalars = spec["timed_gpu"]["scalars"]
    value = lambda text: eval(str(text).replace("/", "//"), {"ceil_div": lambda a, b: -(-a // b)}, dict(scalars))
    result = []
    for arg in spec["arguments"]:
        if arg["role"] == "scalar":
            result.append(str(scalars[arg["name"]]))
            continue
        count = 1
        for dimension in arg["shape"]:
            count *= value(dimension)
        if arg["type"] == "f32":
            result.append(f"f32:{count}")
        else:
            low, high = (value(x) for x in arg.get("fill_range") or (0, 2))
            result.append(f"i32:{count}:{low}:{high}")
    return result


@functools.cache
def architecture():
    text = (
        subprocess.run(
            ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True
        )
        .stdout.split("\n")[0]
        .strip()
    )
    return "sm_" + text.replace(".", "")


def nvcc(source, output, *flags):
    subprocess.run(
        ["nvcc", "-std=c++20", "-O3", f"-arch={architecture()}", *flags, "-o", output, source],
        check=True,
        capture_output=True,
    )


def event_timer():
    program = OUT / "event_timer"
    if not program.exists():
        nvcc(EVENT_TIMER, program, "-ldl")
    return program


def plain_library(source, library):
    nvcc(source, library, "--shared", "-cudart=static", "-Xcompiler=-fPIC,-fopenmp")
    return library


def time_plainly(task, library, calls=50):
    """CUDA events in a fresh process. Returns ms: single call, in a row, by the host's clock; None when it fails."""
    done = subprocess.run(
        [event_timer(), library, str(calls), *sizes_of(task)],
        capture_output=True,
        text=True,
        env=environment(first_gpu=True),
    )
    return tuple(map(float, done.stdout.split())) if done.returncode == 0 else None


class PlainTimer:
    """One process that times all libraries, for a context takes longer than their calls. Where one of them ends it,
    there is another for the next. Close it before something else is timed. `has_guards`: buffers lie as the referee's
    do."""

    def __init__(self, program=None, has_guards=False):
        self.program, self.process, self.flags = program, None, ["--guards"] * has_guards

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
        self.process = None

    def time(self, task, library, calls=50):
        """As time_plainly does."""
        if self.process is None:
            self.process = subprocess.Popen(
                [self.program or event_timer(), *self.flags, "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment(first_gpu=True),
            )
        try:
            self.process.stdin.write("\t".join([str(library), str(calls), *sizes_of(task)]) + "\n")
            self.process.stdin.flush()
            words = self.process.stdout.readline().split()
        except BrokenPipeError:
            words = []
        if not words:  # it ended
            self.process.kill()
            self.__exit__()
        return tuple(map(float, words)) if len(words) == 3 else None


def by_events(task, source, calls=50):
    """The plain script: nvcc, a fresh process, CUDA events. Returns ms as time_plainly does."""
    return time_plainly(task, plain_library(source, OUT / "plain.so"), calls)


def plain_times(tasks, until):
    """{task: [ms as time_plainly returns]} of the baselines, one of each process that had time: compiled side by side,
    then timed."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = list(
            pool.map(lambda task: plain_library(baseline(task), OUT / f"{task.replace('/', '.')}.plain.so"), tasks)
        )
    found = {}
    for _ in range(SITTINGS):
        with PlainTimer() as timer:
            for task, library in zip(tasks, libraries):
                if time.monotonic() < until and (times := timer.time(task, library, SITTING_CALLS)):
                    found.setdefault(task, []).append(times)
    return found


def clock_promise(name, compared, asked):
    """Whether it holds, and the words. `compared`: how far off each kernel is that was judged, in the middle of its
    verdicts and each of them; None where it is too short for this."""
    off = sorted(abs(x.middle) for x in compared if x is not None)
    each = [abs(y) for x in compared if x is not None for y in x.each]
    known = (
        f"differ by at most {off[-1] * 100:.2f} %, median {off[len(off) // 2] * 100:.2f} %"
        if off
        else "are not compared"
    )
    holds = bool(off) and len(compared) >= LEAST_SHARE * asked and off[-1] <= WITHIN
    single = (
        f"; of single verdicts {sum(y <= WITHIN for y in each)} of {len(each)} by at most {WITHIN:.0%}, "
        f"worst {max(each):.1%}"
        if each
        else ""
    )
    return holds, (
        f"{name} {known} ({len(off)} kernels of {LEAST_MS * 1e3:.0f} µs and more, each by the median of its verdicts; "
        f"{len(compared)} of {asked} judged){single}"
    )


class Off(NamedTuple):
    """How far verdicts of a kernel are off, relative."""

    middle: float
    each: list


def off_native(verdicts, plain):
    """{task: how far it is off the median of plain processes, by the same row of calls}."""
    found = {}
    for task in (x for x in plain if x in verdicts):
        mine = [ms for x in verdicts[task] if (ms := (x.get("timing") or {}).get("candidate_ms"))]
        if not mine:
            continue
        alone, rows, _ = zip(*plain[task])
        ms, events = statistics.median(mine), statistics.median(rows)
        off = Off(ms / events - 1, [x / events - 1 for x in mine])
        found[task] = off if ms >= LEAST_MS else None
        say(
            f"        {task:34} outside {ms * 1e3:7.1f} µs ({min(mine) * 1e3:.1f} to {max(mine) * 1e3:.1f}), "
            f"events {events * 1e3:7.1f} µs in a row "
            f"({min(rows) * 1e3:.1f} to {max(rows) * 1e3:.1f}), {statistics.median(alone) * 1e3:7.1f} µs alone; "
            f"{len(mine)} verdicts, {len(rows)} processes: {off.middle * 100:+.1f} %"
        )
    return found


def off_device(verdicts):
    """The same of kernels, on the task's own contents, as the runner's events are."""
    found = {}
    for name, rows in verdicts.items():
        times = []
        for x in rows:
            ms = ((x.get("timing") or {}).get("device_ms") or {}).get("candidate")
            events = {c["name"]: c["value"] for c in x.get("conditions", [])}.get("time_by_events")
            if ms and events:
                times.append((ms, ms / events - 1))
        if times:
            lengths, off = zip(*times)
            found[name] = Off(statistics.median(off), list(off)) if statistics.median(lengths) >= LEAST_MS else None
    return found


def by_kernel(verdicts):
    """{name: its verdicts} of repeated() rows."""
    found = {}
    for name, verdict in verdicts.items():
        found.setdefault(name_of_repeated(name), []).append(verdict)
    return found


def judged_again(name, rows, verdicts, off_of, options=(), seconds=float("inf")):
    """How far kernels are off. Those whose middle is off are judged two more times, which go to `verdicts`;
    the middle of all counts."""
    found = off_of(verdicts)
    off = {x for x, y in found.items() if y is not None and abs(y.middle) > WITHIN}
    if not off:
        return found
    say(f"        judged again, for they are off: {', '.join(sorted(off))}")
    more, _ = judge(
        f"{name}-again",
        repeated([x for x in rows if x[0] in off], VERDICTS - 1),
        options=options,
        first_gpu=True,
        are_honest=True,
        seconds=seconds,
    )
    for kernel, some in by_kernel(more).items():
        verdicts[kernel] += some
    return off_of(verdicts)


def check_clocks():
    steps, left = list(USUALLY), common.part().left()
    tasks = task_ids()
    rows = [(t, t, baseline(t)) for t in tasks]
    verdicts, _ = judge(
        "clocks", repeated(rows), first_gpu=True, are_honest=True, seconds=common.share_of(left, USUALLY, steps)
    )
    verdicts = by_kernel(verdicts)
    until = time.monotonic() + common.share_of(common.part().left(), USUALLY, steps[1:])
    plain = plain_times([x for x in tasks if x in verdicts], until)
    found = judged_again(
        "clocks", rows, verdicts, lambda some: off_native(some, plain), seconds=common.part().left() / 4
    )
    promise(*clock_promise("native: outside clock and CUDA events", found.values(), len(tasks)))
    rows, options = honest_set("device"), ("--clock", "device")
    verdicts, _ = judge("clocks-device", repeated(rows), options=options, first_gpu=True, are_honest=True)
    found = judged_again("clocks-device", rows, by_kernel(verdicts), off_device, options)
    promise(*clock_promise("device code: outside clock and the events of the runner", found.values(), len(rows)))
