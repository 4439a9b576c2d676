"""Kernels of the contracts `native` and `device` whose times a plain process knows: the baselines, the baselines called
twice, and the honest kernels of the corpora."""

import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from gpu_check import common, truth_device
from gpu_check.clocks import PlainTimer, event_timer, plain_library
from gpu_check.common import OUT, baseline, honest_set, say

UNSEEN = 0.5  # of the time of calls: where events have less, the work is not where they are
# A pool gives its memory back whenever somebody waits for the GPU: then a call takes longer in short rows than in long ones.
TAKES_FROM_POOL = "cudaMallocAsync"


def twice(source):
    """A native source whose `solve` does all of it two times."""
    found = re.search(r'extern "C" void solve\(([^)]*)\)', source)
    given = []
    for number, text in enumerate(re.sub(r"/\*.*?\*/", "", found.group(1)).split(",")):
        words = text.split()
        given.append(" ".join(words if len(words) > 1 else [*words, f"unused_{number}"]))
    names = ", ".join(re.search(r"\w+$", x).group(0) for x in given)
    return (source.replace(found.group(0), f"static void once({found.group(1)})")
            + f"\nextern \"C\" void solve({', '.join(given)}) {{\n  once({names});\n  once({names});\n}}\n")


def launched_twice(source):
    """A source of device code that launches all of it two times; None where that is more than eight."""
    found = re.findall(r"^// launch: .*$", source, re.M)
    if len(found) > 4:
        return None
    return source.replace(found[-1], found[-1] + "\n" + "\n".join(found), 1)


def sources(contract):
    """Yields (name, task, source) of what is timed."""
    chosen = common.options.problems
    for name, task, file, *_ in honest_set(contract):
        if chosen and not chosen[0].isdigit() and not any(task.split("/")[1].startswith(x) for x in chosen):
            continue
        text = file.read_text()
        if TAKES_FROM_POOL in text:
            say(f"        {file.stem} is left out: it takes memory from a pool in every call, so how long one takes depends on how "
                "often somebody waits")
            continue
        yield f"{task.split('/')[1]} {file.stem if contract == 'device' or name != task else 'copy'}", task, text
        if contract == "native" and name == task:
            yield f"{task.split('/')[1]} twice", task, twice(text)
        if contract == "device" and file.stem.endswith("_baseline") and (text := launched_twice(text)):
            yield f"{task.split('/')[1]} twice", task, text


def compiled(source, task=None):
    """The library of a source for a plain process, of device code that of a task; None when it does not compile."""
    try:
        if task is None:
            return plain_library(source, source.with_suffix(".so"))
        text, cubin, host = source.read_text(), source.with_suffix(".cubin"), source.with_suffix(".plain.cu")
        cubin.write_bytes(truth_device.cubin_of(text))
        host.write_text(truth_device.launcher(text, task, cubin))
        return plain_library(host, source.with_suffix(".so"))
    except (subprocess.CalledProcessError, ValueError) as problem:
        words = problem.stderr.decode() if isinstance(problem, subprocess.CalledProcessError) else str(problem)
        say(f"        {source.name}: {words[:300]}")
        return None


def say_alone(times):
    """What a single call between events takes more than a queued one."""
    more = sorted((alone - device) * 1e3 for device, alone in times if device and alone)
    if more:
        say(f"        a single call between events takes {more[len(more) // 2]:.1f} µs more than a queued one (median of {len(more)}; "
            f"{more[0]:.1f} to {more[-1]:.1f})")


def prepare(contract, seconds):
    """Compiles and measures until half of `seconds` has passed. Returns (truth, candidates), as
    truth.judge_and_compare wants them."""
    until = time.monotonic() + seconds / 2
    folder = OUT / f"truth_{contract}"
    folder.mkdir(exist_ok=True)
    rows, plain = [], {}  # what is compiled(): a source, and the task of device code
    for name, task, text in sources(contract):
        file = folder / (name.replace(" ", ".") + ".cu")
        file.write_text(text)
        reference = folder / (task.replace("/", ".") + ".cu")
        reference.write_text(baseline(task).read_text())
        plain |= {name: (file, task if contract == "device" else None), task: (reference, None)}
        rows.append((name, task, file, contract))
    event_timer()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = dict(zip(plain, pool.map(lambda x: compiled(*x), plain.values())))
    times, references = {}, {}  # ms; none of what failed
    with PlainTimer() as timer:
        for name, task, *_ in rows:
            if time.monotonic() > until:
                break
            if task not in references:
                references[task] = libraries[task] and timer.time(task, libraries[task])
            times[name] = libraries[name] and timer.time(task, libraries[name])
    if len(times) < len(rows):
        say(f"        no time to measure {len(rows) - len(times)} of {len(rows)}")
    truth, candidates, failed, alone = {}, [], [], []
    for name, task, *rest in rows[:len(times)]:
        mine, model = times[name], references[task]
        if not mine or not model:
            failed.append(name)
            continue
        truth[name] = {"device": (mine[1], model[1]), "call": (mine[2], model[2])}
        alone.append((mine[1], mine[0]))
        if mine[1] < UNSEEN * mine[2]:
            say(f"        {name}: events do not see its own stream, so its calls alone are compared")
            del truth[name]["device"]
        candidates.append((name, task, *rest))
    say_alone(alone)
    if failed:
        say(f"        no plain measurement of {', '.join(failed)}")
    return truth, candidates
