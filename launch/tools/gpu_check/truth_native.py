"""Kernels of the contracts `native` and `device` whose times a plain process knows: the baselines, the baselines called
twice, and the honest kernels of the corpora."""

import json
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from gpu_check import common, truth_device
from gpu_check.clocks import PlainTimer, event_timer, plain_library
from gpu_check.common import OUT, baseline, honest_set, say

GUARDED = 2  # that sitting has its buffers as the referee has them: some kernels' time hangs on how far apart they are
CALLS = 20  # alone, and five rows: three short sittings of a process each say more than one long one
VERDICT_S = 0.8  # on an H200
UNSEEN = 0.5  # of the time of calls: where events have less, the work is not where they are
# A pool gives its memory back whenever a process waits for the GPU.
# Then a call takes longer in short rows than in long ones.
TAKES_FROM_POOL = "cudaMallocAsync"


def twice(source):
    """A native source whose `solve` does all of it two times."""
    found = re.search(r'extern "C" void solve\(([^)]*)\)', source)
    given = []
    for number, text in enumerate(re.sub(r"/\*.*?\*/", "", found.group(1)).split(",")):
        words = text.split()
        given.append(" ".join(words if len(words) > 1 else [*words, f"unused_{number}"]))
    names = ", ".join(re.search(r"\w+$", x).group(0) for x in given)
    return (
        source.replace(found.group(0), f"static void once({found.group(1)})")
        + f'\nextern "C" void solve({", ".join(given)}) {{\n  once({names});\n  once({names});\n}}\n'
    )


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
            say(
                f"        {file.stem} is left out: it takes memory from a pool in every call, "
                "so how long one takes depends on how often a process waits"
            )
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
    except (subprocess.CalledProcessError, ValueError, OSError) as problem:  # OSError: there is no NVRTC
        words = problem.stderr.decode() if isinstance(problem, subprocess.CalledProcessError) else str(problem)
        say(f"        {source.name}: {words[:300]}")
        return None


def say_alone(sitting):
    """What a single call between events takes more than a queued one."""
    more = sorted(
        (x["alone_ms"] - x["device"][0]) * 1e3 for x in sitting.values() if x and x["device"] and x["alone_ms"]
    )
    if more:
        say(
            f"        a single call between events takes {more[len(more) // 2]:.1f} µs more than a queued one "
            f"(median of {len(more)}; "
            f"{more[0]:.1f} to {more[-1]:.1f})"
        )


def prepare(contract):
    """(rows (name, task, file, contract), libraries by name and by task) for plain processes."""
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
        return rows, dict(zip(plain, pool.map(lambda x: compiled(*x), plain.values())))


def sit(contract, number, rows, libraries, until):
    """The sitting of one plain process, which ends then; None of a module that it could not time."""
    result, references = {}, {}  # ms
    with PlainTimer(has_guards=number == GUARDED) as timer:
        for name, task, *_ in rows:
            if time.monotonic() > until:
                break
            if task not in references:
                references[task] = libraries[task] and timer.time(task, libraries[task], CALLS)
            mine = libraries[name] and timer.time(task, libraries[name], CALLS)
            result[name] = times_of(mine, references[task]) if mine and references[task] else None
    (OUT / f"truth.plain.{contract}.{number}.ndjson").write_text(
        "".join(json.dumps({"name": name} | x) + "\n" for name, x in result.items() if x)
    )
    if len(result) < len(rows):
        say(f"        sitting {number} had no time for {len(rows) - len(result)} of {len(rows)}")
    return result


def times_of(mine, reference):
    """As a sitting has them, from what PlainTimer says of a module and of the reference."""
    both = lambda i: (mine[i], reference[i], reference[i] / mine[i])
    return {"alone_ms": mine[0], "device": both(1) if mine[1] >= UNSEEN * mine[2] else None, "call": both(2)}


def say_unknown(rows, sitting):
    """What the first sitting does not know, and what is strange in it."""
    say_alone(sitting)
    unseen = [name for name, x in sitting.items() if x and not x["device"]]
    if unseen:
        say(f"        events do not see the streams of these, so their calls alone are compared: {', '.join(unseen)}")
    failed = [x[0] for x in rows if x[0] in sitting and not sitting[x[0]]]
    if failed:
        say(f"        no plain measurement of {', '.join(failed)}")


def spare_for(left, verdicts, took):
    """Seconds of those left for a sitting before so many verdicts, and of those to be kept for one after them, each as
    long as the first took at most. Verdicts come first, then the sitting after them, which has the machine of another
    moment."""
    spare = max(0.0, left - VERDICT_S * verdicts)
    after = min(took, spare)
    return min(took, spare - after), after
