"""What all parts share: where things lie, judging, and what is said at the end."""

import argparse
import json
import math
import os
import pathlib
import subprocess
import threading
import time

from gpu_check import rates

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[2]  # of a checkout; the tarball has what is asked for elsewhere
ROOT = pathlib.Path(os.environ.get("GPU_CHECK_ROOT", SOURCES / "build"))
OUT = pathlib.Path(os.environ.get("OUT", "/tmp"))
PROGRAM = ROOT / "bin" / "kernelmill"


def lies(beside, in_sources):
    """The path of something that the tarball has beside this package, and a checkout elsewhere."""
    found = HERE.parent / beside
    return found if found.exists() else SOURCES / in_sources


CONFIGS = ROOT / "share" / "kernelmill" / "configs"
CONFIGS = CONFIGS if CONFIGS.exists() else SOURCES / "configs"
TASKS = CONFIGS / "tasks"
CORPUS = lies("gpu_corpus", "tests/exploits/gpu_corpus")
CPU_CORPUS = lies("corpus", "tests/exploits/corpus")
TORCH_CORPUS = lies("torch_corpus", "tests/exploits/torch_corpus")
MATRIX = lies("matrix", "tests/exploits/matrix")
PROFILE_KERNELS = lies("profile_kernels.cu", "tests/gpu/profile_kernels.cu")
SANITIZER_KERNELS = lies("sanitizer_kernels.cu", "tests/gpu/sanitizer_kernels.cu")
EVENT_TIMER = lies("event_timer.cu", "tests/bench/event_timer.cu")

# A speedup with a low end of at most this is not paid.
MOST_UNPAID = 1.02

options = argparse.Namespace()  # of the command line
parts = []  # a Part for each that ran, the current one last
honest = []  # (part, contract, whether cores were busy, outcome, reasons, slot seconds) of kernels known to be honest


def processor_time(stat=pathlib.Path("/proc/stat")):
    """Of all processors since the machine began, in ticks: for which they had work, and of which the host of a virtual
    machine took some. (0, 0) where the system does not say."""
    try:
        ticks = [int(x) for x in stat.read_text().split("\n", 1)[0].split()[1:9]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    except (OSError, ValueError):
        return 0, 0
    return user + nice + system + irq + softirq + steal, steal


def stolen_percent(before, after):
    """Percent of the processors' time that the host took in between."""
    wanted, stolen = (b - a for a, b in zip(before, after))
    return 100 * stolen / wanted if wanted > 0 else 0.0


class Part:
    def __init__(self, name):
        self.name, self.started, self.processors = name, time.monotonic(), processor_time()
        self.tried = self.caught = self.unpaid = self.paid = (
            0  # of what a part wants to catch; what is only timed says so by itself
        )
        self.said = []  # (whether it holds, text)

    def left(self):
        """Seconds until the part must have ended; infinite when no limit was given."""
        limit = getattr(options, "seconds", None)
        return float("inf") if not limit else limit - (time.monotonic() - self.started)


def share_of(left, usually, names):
    """Seconds of the first of `names`, of those that are left for all of them."""
    return left * usually[names[0]] / sum(usually[x] for x in names)


def part():
    if not parts:
        parts.append(Part("none"))
    return parts[-1]


def say(text):
    print(text, flush=True)


def promise(holds, text):
    say(("ok      " if holds else "BROKEN  ") + text)
    part().said.append((bool(holds), text))


def note_tried(tried, caught, unpaid=0, paid=0):
    """Counts for the table at the end."""
    now = part()
    now.tried += tried
    now.caught += caught
    now.unpaid += unpaid
    now.paid += paid


def end_table():
    """One line a part. Returns whether all promises hold."""
    say("\npart             tried  caught  unpaid    paid  seconds  stolen  promises")
    for x, following in zip(parts, parts[1:] + [None]):
        ended, processors = (
            (following.started, following.processors) if following else (time.monotonic(), processor_time())
        )
        kept = sum(holds for holds, _ in x.said)
        counts = [str(n) if x.tried else "" for n in (x.tried, x.caught, x.unpaid, x.paid)]
        say(
            f"{x.name:15} {counts[0]:>6} {counts[1]:>7} {counts[2]:>7} {counts[3]:>7} {ended - x.started:8.0f} "
            f"{stolen_percent(x.processors, processors):5.1f} %  {kept} of {len(x.said)} hold"
        )
        for holds, text in x.said:
            say(f"    {'ok    ' if holds else 'BROKEN'} {text}")
    say_honest()
    return all(holds for x in parts for holds, _ in x.said)


def note_honest(verdict, is_busy=False):
    """A verdict on a kernel that is honest, whichever part asked for it."""
    honest.append(
        (
            part().name,
            verdict.get("contract") or "?",
            is_busy,
            verdict.get("outcome"),
            sorted(reasons(verdict)),
            verdict.get("slot_s") or 0,
        )
    )


def say_honest():
    """What became of all honest kernels of this run."""
    if not honest:
        return
    refused = [x for x in honest if x[3] not in ("accepted", "infrastructure")]
    machine = sum(x[3] == "infrastructure" for x in honest)
    say(
        f"        honest kernels in all parts: refused {rates.words(len(refused), len(honest))}, "
        f"{sum(x[2] for x in honest)} of them beside "
        f"busy processes; left to the machine {machine}"
        + "".join(f"; {name}, {contract}: {', '.join(why)}" for name, contract, _, _, why, _ in refused)
    )
    for contract in sorted({x[1] for x in honest}):
        slots = sorted(x[5] for x in honest if x[1] == contract and x[3] == "accepted")
        if slots:
            say(
                f"        {contract}: the GPU's slot is held for {1e3 * sum(slots) / len(slots):.0f} ms a "
                f"verdict (mean of {len(slots)}; "
                f"median {1e3 * slots[len(slots) // 2]:.0f})"
            )


def environment(cache=None, first_gpu=False):
    """`first_gpu`: what is compared is measured on one card, for two of a kind differ by a percent or two."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if first_gpu:
        env["CUDA_VISIBLE_DEVICES"] = env.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    if cache:
        env["XDG_CACHE_HOME"] = str(cache)
    return env


def task_ids():
    return sorted(str(p.parent.relative_to(TASKS)) for p in TASKS.glob("native/*/task.json"))


def task_spec(task):
    text = (TASKS / task / "task.json").read_text()
    return json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))


def baseline(task):
    return TASKS / task / "baseline.cu"


def verdicts_of(name, candidates, cache=None, options=(), seconds=float("inf"), backend="cuda", first_gpu=False):
    """Judges [(name, task, file[, contract])] in one command and yields the verdicts as they come. After
    `seconds` the command is ended."""
    batch = OUT / f"{name}.ndjson"
    batch.write_text(
        "".join(
            json.dumps({"name": c[0], "task": c[1], "file": str(c[2]), "contract": c[3] if len(c) > 3 else "native"})
            + "\n"
            for c in candidates
        )
    )
    with (OUT / f"{name}.verdicts.ndjson").open("w") as kept, (OUT / f"{name}.stderr").open("w+") as words:
        process = subprocess.Popen(
            [PROGRAM, "judge", batch, "--backend", backend, *options],
            stderr=words,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(cache, first_gpu),
        )
        late = threading.Event()
        ender = threading.Timer(min(max(seconds, 0), 10**6), lambda: (late.set(), process.terminate()))
        ender.daemon = True
        ender.start()
        try:
            for line in process.stdout:
                kept.write(line)  # what was judged is there also when this script is ended
                kept.flush()
                if line.startswith("{") and line.endswith("}\n"):  # the last one may be cut when time is over
                    yield with_numbers(json.loads(line))
        finally:
            ender.cancel()
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.returncode and not late.is_set():
            words.seek(0)
            say(words.read()[-2000:])


def with_numbers(verdict):
    """A verdict whose speedup has a number where JSON has none: of a kind with one block nothing is known."""
    speedup = (verdict.get("timing") or {}).get("speedup") or {}
    for name, unknown in (("low", 0.0), ("high", math.inf), ("estimate", math.nan)):
        if name in speedup and speedup[name] is None:
            speedup[name] = unknown
    return verdict


def judge(
    name, candidates, cache=None, options=(), first_gpu=False, are_honest=False, is_busy=False, seconds=float("inf")
):
    """Judges all in one command, in no more than `seconds`. Returns the verdicts by name,
    and the seconds that it took."""
    started = time.monotonic()
    found = {}
    for verdict in verdicts_of(name, candidates, cache, options, min(seconds, part().left()), first_gpu=first_gpu):
        found[verdict["name"]] = verdict
        if are_honest:
            note_honest(verdict, is_busy)
    return found, time.monotonic() - started


VERDICTS = 3  # of a kernel whose time is known: one has its own interval, and says of the clock what that allows


def repeated(rows, times=VERDICTS):
    """Rows to be judged, each so often, all of them once before any comes again."""
    return [(f"{name} {number}", *row) for number in range(times) for name, *row in rows]


def name_of_repeated(name):
    return name.rsplit(" ", 1)[0]


def manifest():
    return json.loads((CORPUS / "manifest.json").read_text())


def reasons(verdict):
    found = {verdict.get("category"), (verdict.get("error") or {}).get("category")}
    found |= {x["rule"] for x in (verdict.get("integrity") or {}).get("findings", [])}
    return found - {None, ""}


def contract(row):
    return row.get("contract", "native")


def honest_set(wanted):
    rows = [(t, t, baseline(t)) for t in task_ids()] if wanted == "native" else []
    rows += [
        (x["file"], x["task"], CORPUS / x["file"], wanted)
        for x in manifest()
        if x["expect"] == "accepted" and contract(x) == wanted
    ]
    return sorted(rows, key=lambda row: row[1])


def write_task(root, name, problem, **more):
    """A task of the contract `torch`, below a folder of our own. Returns its id."""
    folder = pathlib.Path(root) / "torch" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problem.py").write_text(problem)
    (folder / "prompt.md").write_text(f"{name}\n")
    (folder / "task.json").write_text(
        json.dumps(
            {
                "schema_version": 1,
                "id": f"torch/{name}",
                "title": name,
                "verb": "optimize",
                "operator_family": "check",
                "contract": "torch",
                "difficulty": "easy",
                "backends": ["cpu", "cuda"],
                "precision": "fp32",
            }
            | more,
            indent=2,
        )
    )
    return f"torch/{name}"
