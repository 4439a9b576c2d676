"""The outside clock beside CUDA events in a plain process."""

import subprocess

from gpu_check.common import (EVENT_TIMER, OUT, baseline, environment, honest_set, judge, promise, say, task_ids,
                              task_spec)


def sizes_of(task):
    spec = task_spec(task)
    scalars = spec["timed_gpu"]["scalars"]
    value = lambda text: eval(str(text).replace("/", "//"), {"ceil_div": lambda a, b: -(-a // b)},
                              dict(scalars))
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


def architecture():
    text = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
                          capture_output=True, text=True).stdout.split("\n")[0].strip()
    return "sm_" + text.replace(".", "")


def nvcc(source, output, *flags):
    subprocess.run(["nvcc", "-std=c++20", "-O3", f"-arch={architecture()}", *flags, "-o", output,
                    source], check=True, capture_output=True)


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
    done = subprocess.run([event_timer(), library, str(calls), *sizes_of(task)], capture_output=True, text=True,
                          env=environment(first_gpu=True))
    return tuple(map(float, done.stdout.split())) if done.returncode == 0 else None


class PlainTimer:
    """One process that times all libraries, for a context takes longer than their calls. Where one of them ends it, there is
    another for the next. Close it before something else is timed."""

    def __init__(self, program=None):
        self.program, self.process = program, None

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
            self.process = subprocess.Popen([self.program or event_timer(), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            env=environment(first_gpu=True))
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


def check_clocks():
    verdicts, _ = judge("clocks", [(t, t, baseline(t)) for t in task_ids()], first_gpu=True, are_honest=True)
    worst = 0
    for task in task_ids():
        ms = (verdicts.get(task, {}).get("timing", {}) or {}).get("candidate_ms")
        events = by_events(task, baseline(task))
        if not ms or not events or ms < 0.05:
            continue
        off = ms / events[1] - 1
        worst = max(worst, abs(off))
        say(f"        {task:34} outside {ms * 1e3:7.1f} us, events {events[1] * 1e3:7.1f} us in a "
            f"row, {events[0] * 1e3:7.1f} us alone: {off * 100:+.1f} %")
    promise(worst <= 0.02, f"outside clock and CUDA events differ by at most {worst * 100:.1f} % "
            "(kernels of 50 us and more, the same row of calls)")
    rows = honest_set("device")
    verdicts, _ = judge("clocks-device", rows, options=("--clock", "device"), first_gpu=True, are_honest=True)
    differences = []
    for x in verdicts.values():
        ms = (x["timing"].get("device_ms") or {}).get("candidate") or 0  # of the task's own contents, as the events
        events = {c["name"]: c["value"] for c in x.get("conditions", [])}.get("time_by_events")
        if ms >= 0.05 and events:
            differences.append(abs(ms / events - 1))
    differences.sort()
    if differences:
        promise(differences[-1] <= 0.02, f"device code: outside clock and the events of the runner "
                f"differ by at most {differences[-1] * 100:.2f} %, median "
                f"{differences[len(differences) // 2] * 100:.2f} % ({len(differences)} kernels)")
