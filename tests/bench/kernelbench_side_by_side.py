"""Runs the same answers through KernelBench's own evaluator and through `kernelmill judge`.

Given a KernelBench checkout by its user, every answer of kernelbench_candidates goes through both, on one
machine, and what came out is compared: verdicts, seconds for each answer, answers per hour, speedups. Each
result is written to --state as soon as there is one: a call that is cut off is continued by the next.

    python kernelbench_side_by_side.py --kernelbench CHECKOUT --problems problems.jsonl \\
        --kernelmill build/bin/kernelmill --state side_by_side.json [--limit-seconds 500]

The benchmark is called as its batch script calls it: `eval_kernel_against_ref`, 5 correctness trials, 100
timed runs, CUDA events, its check for excessive speedup, a fresh process and an empty build folder for each
answer. What its package imports and an evaluation never uses may be missing: see STAND_INS.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent

# -- the benchmark, in a process of its own -----------------------------------------------------

# What kernelbench/__init__.py and utils.py import to talk to language models, and pydantic, of which eval.py
# takes a base class. None of it takes part in an evaluation; each stands in only where it is missing.
STAND_INS: dict[str, tuple[str, ...]] = {
    "dotenv": ("load_dotenv",),
    "openai": ("OpenAI",),
    "litellm": ("completion",),
    "tqdm": ("tqdm",),
    "requests": (),
    "pydantic": ("BaseModel",),
}

# Names that the benchmark's set_gpu_arch takes, by compute capability.
ARCHITECTURES = {(7, 0): "Volta", (7, 5): "Turing", (8, 0): "Ampere", (8, 6): "Ampere", (8, 9): "Ada",
                 (9, 0): "Hopper", (10, 0): "Blackwell", (12, 0): "Blackwell"}


class RecordBase:
    """Stands in for pydantic.BaseModel: fields with defaults, set by keyword."""

    def __init__(self, **values: object) -> None:
        for base in reversed(type(self).__mro__):
            for name in base.__dict__.get("__annotations__", {}):
                default = getattr(type(self), name, None)
                setattr(self, name, values.get(name, dict(default) if isinstance(default, dict) else default))


def stand_in() -> list[str]:
    """Puts a module into sys.modules for each of STAND_INS that is missing; returns their names."""
    made = []
    for name, attributes in STAND_INS.items():
        if importlib.util.find_spec(name) is not None:
            continue
        module = types.ModuleType(name)
        for attribute in attributes:
            setattr(module, attribute, RecordBase if attribute == "BaseModel" else lambda *a, **k: None)
        sys.modules[name] = module
        made.append(name)
    return made


def plain(value: object, longest: int = 600) -> object:
    """Returns something that JSON can hold: exceptions and the like as the end of their text."""
    if isinstance(value, dict):
        return {str(k): plain(v, longest) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, longest) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    text = str(value)
    return text if len(text) <= longest else "..." + text[-longest:]


def benchmark_worker(request_path: str) -> None:
    """The whole life of a fresh process that evaluates one answer with the benchmark."""
    started = time.monotonic()
    request = json.loads(pathlib.Path(request_path).read_text())
    sys.path.insert(0, str(pathlib.Path(request["kernelbench"]) / "src"))
    made = stand_in()
    import torch

    from kernelbench import eval as benchmark
    from kernelbench import utils

    device = torch.device("cuda:0")
    utils.set_gpu_arch([ARCHITECTURES[torch.cuda.get_device_capability(device)]])
    imported = time.monotonic()
    result: dict = {"stand_ins": made, "compiled": False, "correctness": False}
    try:
        outcome = benchmark.eval_kernel_against_ref(
            original_model_src=request["problem"],
            custom_model_src=request["answer"],
            measure_performance=True,
            timing_method="cuda_event",
            verbose=False,
            num_correct_trials=5,
            num_perf_trials=100,
            build_dir=request["build"],
            device=device,
            backend=request["backend"],
            precision=torch.float32,
        )
    except Exception as e:  # noqa: BLE001  the batch script, too, makes a verdict of whatever comes
        kind = "cuda_error" if "CUDA error" in str(e) else "other_error"
        result["metadata"] = {kind: str(e), kind + "_name": type(e).__name__}
    else:
        if outcome is None:
            result["nothing"] = True
            result["metadata"] = {"error": "the evaluator returned None, which asks for another try"}
        else:
            for name in ("compiled", "correctness", "metadata", "runtime", "runtime_stats", "ref_runtime",
                         "ref_runtime_stats"):
                result[name] = getattr(outcome, name)
    result["import_s"] = imported - started
    result["eval_s"] = time.monotonic() - imported
    temporary = pathlib.Path(request["result"] + ".new")
    temporary.write_text(json.dumps(plain(result)))
    temporary.rename(request["result"])


# -- answers and what is known of them ----------------------------------------------------------

Row = dict  # a row of manifest.json, with "path", "source" and "key"


def load_problems(path: pathlib.Path) -> dict[tuple[int, int], tuple[str, str]]:
    """Returns name and code by level and number, of a problems.jsonl or of a checkout."""
    if path.is_file():
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        return {(x["level"], x["problem_id"]): (x["name"], x["code"]) for x in rows}
    found = {}
    for file in sorted(path.glob("KernelBench/level*/*.py")):
        number = file.stem.split("_")[0]
        if number.isdigit():
            found[int(file.parent.name[5:]), int(number)] = (file.stem, file.read_text())
    return found


def estimate_seconds(row: Row) -> float:
    """Guesses what the benchmark needs on an H200: tensors drawn on the CPU, torch's headers in nvcc."""
    draws = {"right": 7, "hack": 7, "wrong": 6, "crash": 2, "no_compile": 0}[row["kind"]]
    drawn = draws * row["input_mb"] / 1000 / 0.75 + 2 * row["weight_mb"] / 1000 / 0.75
    return 8 + drawn + (54 if row["language"] == "cuda" else 0)


def gpu_mb(row: Row) -> float:
    """Guesses the most memory that the benchmark takes on the GPU: allclose makes copies of the outputs."""
    return 2 * row["input_mb"] + 6 * row["output_mb"] + 2 * row["weight_mb"]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Any beginning of the result holds each kind and language in about its share of the whole."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["kind"], row["language"]].append(row)
    places = []
    for group in groups.values():
        group.sort(key=lambda x: hashlib.sha256(x["file"].encode()).hexdigest())
        places += [((i + 0.5) / len(group), x["file"], x) for i, x in enumerate(group)]
    return [x for _, _, x in sorted(places, key=lambda place: place[:2])]


def load_candidates(options: argparse.Namespace) -> list[Row]:
    """Reads the manifest, leaves out what was not asked for, and puts the rest in order."""
    rows = []
    for row in json.loads((options.candidates / "manifest.json").read_text()):
        path = options.candidates / row["file"]
        source = path.read_text()
        key = row["file"] + "@" + hashlib.sha256(source.encode()).hexdigest()[:12]
        rows.append(row | {"path": path, "source": source, "key": key})
    rows = in_order(rows)
    levels = {int(x) for x in options.levels.split(",")}
    return [x for x in rows if x["level"] in levels and x["input_mb"] <= 1000 * options.max_input_gb
            and (not options.match or any(fnmatch.fnmatch(x["file"], p) for p in options.match))]


class State:
    """What is known so far, in one file that is replaced after each result. Safe to use from threads."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.data: dict = {"version": 1, "theirs": {}, "ours": {}, "passes": {}, "machine": {}}
        if path.exists():
            self.data |= json.loads(path.read_text())

    def put(self, part: str, key: str, value: object) -> None:
        with self.lock:
            self.data[part][key] = value
            temporary = self.path.with_suffix(".new")
            temporary.write_text(json.dumps(self.data, indent=1) + "\n")
            temporary.replace(self.path)


class Clock:
    """The time that a call may take."""

    def __init__(self, seconds: float | None) -> None:
        self.end = math.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        return self.end - time.monotonic()


class Room:
    """An amount of which parts are taken for a while; who finds too little left waits."""

    def __init__(self, amount: float) -> None:
        self.amount = self.free = amount
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, part: float) -> Iterator[None]:
        part = min(part, self.amount)
        with self.changed:
            self.changed.wait_for(lambda: self.free >= part)
            self.free -= part
        try:
            yield
        finally:
            with self.changed:
                self.free += part
                self.changed.notify_all()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def stop_group(process: subprocess.Popen) -> None:
    """Ends a process that leads a session of its own, with all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


# -- the benchmark's side ------------------------------------------------------------------------

def evaluate_with_benchmark(options: argparse.Namespace, row: Row, problem: str, alone: bool) -> dict:
    """Runs one answer in a fresh process and returns its result with the seconds from start to end."""
    limit = min(options.timeout, options.cut_hangs) if row.get("hangs") else options.timeout
    with tempfile.TemporaryDirectory(prefix="kernelbench-") as folder:
        base = pathlib.Path(folder)
        (base / "build").mkdir()
        request = {"kernelbench": str(options.kernelbench.resolve()), "problem": problem,
                   "answer": row["source"], "build": str(base / "build"), "result": str(base / "result.json"),
                   "backend": "triton" if row["language"] == "triton" else "cuda"}
        (base / "request.json").write_text(json.dumps(request))
        environment = dict(os.environ, TRITON_CACHE_DIR=str(base / "triton"))
        started = time.monotonic()
        with open(base / "output", "wb") as output:
            process = subprocess.Popen(
                [options.python, str(pathlib.Path(__file__).resolve()), "--benchmark-worker",
                 str(base / "request.json")],
                stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            late = False
            try:
                process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                late = True
            seconds = time.monotonic() - started
            stop_group(process)
        result_file = base / "result.json"
        if result_file.exists():
            result = json.loads(result_file.read_text())
        else:
            why = f"timed out after {limit:g} s" if late else f"the process ended with {process.returncode}"
            tail = (base / "output").read_bytes()[-400:].decode(errors="replace")
            result = {"compiled": False, "correctness": False,
                      "metadata": {"error": why} if late else {"error": why, "output": tail}}
        cut = late and limit < options.timeout
        return result | {"seconds": seconds, "alone": alone, "timed_out": late, "cut": cut,
                         "died": not late and not result_file.exists()}


def run_theirs(options: argparse.Namespace, rows: list[Row], problems: dict, state: State,
               clock: Clock) -> bool:
    """Evaluates what is missing: the first --timed answers one after another, the others --workers at once,
    for their verdicts alone. Returns whether everything is done."""

    def one(row: Row, alone: bool) -> bool:
        wait = options.cut_hangs if row.get("hangs") else 1.3 * estimate_seconds(row)
        if clock.left() < min(wait + 5, options.timeout):
            return False
        code = problems[row["level"], row["problem_id"]][1]
        result = evaluate_with_benchmark(options, row, code, alone)
        if "stand_ins" in result:
            state.put("machine", "stand_ins", result.pop("stand_ins"))
        state.put("theirs", row["key"], result)
        verdict = "accepts" if accepted_by_benchmark(result) else "rejects"
        say(f"benchmark {verdict} {row['file']} in {result['seconds']:.1f} s"
            + ("" if alone else f" (beside {options.workers - 1} others)"))
        return True

    timed = len(rows) if options.timed is None else options.timed
    for row in rows[:timed]:
        known = state.data["theirs"].get(row["key"])
        if known is None or not known["alone"]:
            if not one(row, True):
                return False
    others = [x for x in rows[timed:] if x["key"] not in state.data["theirs"]]
    # Long ones first: the last of a crowd works alone.
    others.sort(key=estimate_seconds, reverse=True)
    room = Room(1000 * options.gpu_gb)

    def beside(row: Row) -> bool:
        with room.taken(gpu_mb(row)):
            return one(row, False)

    with ThreadPoolExecutor(options.workers) as pool:
        return all(list(pool.map(beside, others)))


def accepted_by_benchmark(result: dict) -> bool:
    return bool(result["compiled"] and result["correctness"])


def reason_of_benchmark(result: dict) -> str:
    """Returns why the benchmark said what it said, in one line."""
    data = result.get("metadata") or {}
    if accepted_by_benchmark(result):
        return "accepted" + (", flagged as excessive speedup" if data.get("excessive_speedup") else "")
    for key in ("error", "compilation_error", "cuda_error", "other_error", "runtime_error",
                "correctness_issue"):
        if data.get(key):
            text = f"{key}: {data[key]}"
            if key == "correctness_issue" and data.get("max_difference"):
                text += f", largest difference {max(map(float, data['max_difference'])):.3g}"
            return " ".join(text.split())[-220:]
    return "rejected" if result["compiled"] else "did not compile"


# -- our side ------------------------------------------------------------------------------------

def read_verdict(line: str) -> dict:
    """Takes from a line of `kernelmill judge` what is compared here. The only place that knows its form."""
    record = json.loads(line)
    timing = record.get("timing") or {}
    speedup = timing.get("speedup") or {}
    findings = [x["rule"] for x in (record.get("integrity") or {}).get("findings", [])
                if x.get("severity") == "critical"]
    fault = record.get("error") or {}
    return {
        "name": record["name"],
        "outcome": record["outcome"],
        "category": record.get("category", ""),
        "findings": findings,
        "message": " ".join(str(fault.get("message", "")).split())[-300:],
        "compiled": record.get("compiled"),
        "correct": record.get("correct"),
        "cached": record.get("cached", False),
        "build_s": record.get("build_s") or 0.0,
        "slot_s": record.get("slot_s") or 0.0,
        "slot_seconds": record.get("slot_seconds") or {},
        "measured": bool(timing.get("measured")),
        "candidate_ms": timing.get("candidate_ms"),
        "reference_ms": timing.get("reference_ms"),
        "speedup": speedup.get("estimate"),
        "speedup_low": speedup.get("low"),
        "speedup_high": speedup.get("high"),
        "clock": timing.get("clock", ""),
        "device": record.get("device", ""),
    }


def reason_of_ours(verdict: dict) -> str:
    if verdict["outcome"] == "accepted":
        return "accepted"
    parts = [verdict["category"], ", ".join(verdict["findings"]), verdict["message"]]
    return ": ".join(x for x in parts if x)[:220]


def marked(source: str, mark: str) -> str:
    """Returns the same answer with a comment in all that is compiled of it: the file, the CUDA source and
    each Triton kernel. So no cache, by whatever it goes, has anything of it."""
    source = source.replace('cuda_source = r"""', f'cuda_source = r"""\n// {mark}', 1)
    source = re.sub(r"(@triton\.jit\ndef [\s\S]*?\):\n)", rf"\1    # {mark}\n", source)
    return f"{source}\n# {mark}\n"


class Ours:
    """Calls kernelmill. Tasks, batches and caches lie in a folder beside the state."""

    def __init__(self, options: argparse.Namespace, problems: dict, clock: Clock) -> None:
        self.options, self.problems, self.clock = options, problems, clock
        self.base = options.state.with_suffix(".work").resolve()
        self.base.mkdir(parents=True, exist_ok=True)

    def import_tasks(self) -> None:
        tasks = self.base / "tasks"
        if (tasks / "kernelbench").exists():
            return
        source = self.options.problems or self.options.kernelbench
        subprocess.run([self.options.kernelmill, "task", "import", "kernelbench", source, "--to", tasks],
                       check=True, stdout=sys.stderr)

    def write_batch(self, name: str, rows: list[Row], copies: int) -> pathlib.Path:
        """Writes answers and their list; of several copies each has comments of its own."""
        folder = self.base / name
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        lines = []
        for copy in range(copies):
            for row in rows:
                file = f"{copy}_" + row["file"].replace("/", "_")
                source = marked(row["source"], f"{name} {copy}") if copies > 1 else row["source"]
                (folder / file).write_text(source)
                task = f"kernelbench/level{row['level']}/{self.problems[row['level'], row['problem_id']][0]}"
                lines.append(json.dumps({"name": f"{copy}:{row['key']}", "task": task, "file": file}))
        batch = folder / "batch.ndjson"
        batch.write_text("\n".join(lines) + "\n")
        return batch

    def judge(self, batch: pathlib.Path, cache: str, fresh: bool) -> Iterator[tuple[float, dict]]:
        """Yields seconds since the start and verdict for each line, as they come. Ends early when the time
        is up; the caller sees that by the count."""
        folder = self.base / cache
        if fresh and folder.exists():
            shutil.rmtree(folder)
        command = [str(self.options.kernelmill), "judge", str(batch), "--backend", self.options.backend,
                   "--root", str(self.base / "tasks"), "--python", self.options.python,
                   *self.options.judge_arg]
        environment = dict(os.environ, XDG_CACHE_HOME=str(folder), TRITON_CACHE_DIR=str(folder / "triton"))
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment,
                                   start_new_session=True)
        alarm = None
        if math.isfinite(self.clock.end):
            alarm = threading.Timer(max(0.0, self.clock.left()), stop_group, [process])
            alarm.daemon = True
            alarm.start()
        try:
            for line in process.stdout:
                if line.endswith("\n"):  # the last one is half a line when the time was up
                    yield time.monotonic() - started, read_verdict(line)
            if process.wait() not in (0, -signal.SIGKILL):
                raise SystemExit(f"failed to judge {batch}: kernelmill ended with {process.returncode}")
        finally:
            if alarm is not None:
                alarm.cancel()
            stop_group(process)


def run_verdicts(ours: Ours, rows: list[Row], state: State) -> bool:
    """Judges each answer once, from an empty cache; those that hang come last, on their own. What was the
    machine's fault is judged again by the next call."""
    def lacks(row: Row) -> bool:
        return state.data["ours"].get(row["key"], {}).get("outcome") not in ("accepted", "rejected")

    for hangs in (False, True):
        missing = [x for x in rows if bool(x.get("hangs")) == hangs and lacks(x)]
        if not missing:
            continue
        if ours.clock.left() < 10:
            return False
        batch = ours.write_batch("verdicts", missing, 1)
        for seconds, verdict in ours.judge(batch, "cache-verdicts", fresh=True):
            key = verdict.pop("name").partition(":")[2]
            state.put("ours", key, verdict | {"after_s": seconds})
            say(f"kernelmill {verdict['outcome']} {key.partition('@')[0]} after {seconds:.1f} s")
    return all(x["key"] in state.data["ours"] for x in rows)


def matched(rows: list[Row], state: State, language: str) -> list[Row]:
    """The answers that the speeds of both evaluators are compared on: those that the benchmark ran alone,
    without the ones that hang. Without such all of the language."""
    usable = [x for x in rows if x["language"] == language and not x.get("hangs")]
    timed = [x for x in usable if state.data["theirs"].get(x["key"], {}).get("alone")]
    return timed or usable


def run_passes(options: argparse.Namespace, ours: Ours, rows: list[Row], state: State) -> bool:
    """Throughput: each language by itself, many copies that differ in a comment; then the same, built."""
    for language in ("triton", "cuda"):
        chosen = matched(rows, state, language)
        if not chosen:
            continue
        copies = max(2, math.ceil(options.at_least / len(chosen)))
        members = sorted(x["key"] for x in chosen)
        wanted = {f"{language} {kind}": kind for kind in ("cold", "warm")}
        if all(state.data["passes"].get(x, {}).get("members") == members for x in wanted):
            continue
        batch = ours.write_batch(f"pass-{language}", chosen, copies)
        for name, kind in wanted.items():
            if ours.clock.left() < 20:
                return False
            began = time.monotonic()
            arrivals = [(seconds, verdict["cached"], verdict["build_s"], verdict["slot_s"])
                        for seconds, verdict in ours.judge(batch, f"cache-{language}", kind == "cold")]
            wall = time.monotonic() - began
            if len(arrivals) != len(chosen) * copies:
                say(f"kernelmill: the pass {name} was cut off after {len(arrivals)} answers; it is not kept")
                return False
            state.put("passes", name, {"members": members, "copies": copies, "n": len(arrivals),
                                       "wall_s": wall, "arrivals": arrivals})
            say(f"kernelmill {name}: {len(arrivals)} answers in {wall:.1f} s")
    return True


# -- what came out -------------------------------------------------------------------------------

def steady_seconds(one_pass: dict, cores: int) -> float | None:
    """Seconds for an answer while the pipe is full: between verdict number `cores` and the last but `cores`,
    so that builds under way at both ends cancel out. None where there are too few answers."""
    times = sorted(x[0] for x in one_pass["arrivals"])
    first, last = cores, len(times) - 1 - cores
    return (times[last] - times[first]) / (last - first) if last - first >= 8 else None


def spread(values: list[float]) -> dict:
    if not values:
        return {"n": 0}
    return {"n": len(values), "median": statistics.median(values), "mean": statistics.fmean(values)}


def agreement(rows: list[Row], state: State) -> dict:
    """Sorts the answers that both judged by their two verdicts; lists each difference with both reasons."""
    table: dict = {"both accept": [], "both reject": [], "benchmark alone accepts": [],
                   "kernelmill alone accepts": [], "no verdict": []}
    differences = []
    for row in rows:
        theirs, ours = state.data["theirs"].get(row["key"]), state.data["ours"].get(row["key"])
        if theirs is None or ours is None:
            continue
        if ours["outcome"] not in ("accepted", "rejected") or theirs.get("nothing"):
            name = "no verdict"
        else:
            a, b = accepted_by_benchmark(theirs), ours["outcome"] == "accepted"
            name = {(True, True): "both accept", (False, False): "both reject",
                    (True, False): "benchmark alone accepts", (False, True): "kernelmill alone accepts"}[a, b]
        table[name].append(row["file"])
        if name not in ("both accept", "both reject"):
            differences.append({"file": row["file"], "kind": row["kind"], "what": name,
                                "benchmark": reason_of_benchmark(theirs),
                                "kernelmill": reason_of_ours(ours), "note": row["note"]})
    surprises = [x["file"] for x in rows if x["key"] in state.data["ours"] and
                 state.data["ours"][x["key"]]["outcome"] != x.get(
                     "kernelmill", "accepted" if x["kind"] == "right" else "rejected")]
    return {"counts": {k: len(v) for k, v in table.items()}, "differences": differences,
            "kernelmill_unlike_manifest": surprises}


def seconds_by_class(rows: list[Row], state: State) -> list[dict]:
    """Seconds for an answer by kind and language: the benchmark's alone, ours of the pass of verdicts."""
    result = []
    for kind, language in sorted({(x["kind"], x["language"]) for x in rows}):
        group = [x for x in rows if (x["kind"], x["language"]) == (kind, language) and not x.get("hangs")]
        theirs = [state.data["theirs"][x["key"]] for x in group if x["key"] in state.data["theirs"]]
        ours = [state.data["ours"][x["key"]] for x in group if x["key"] in state.data["ours"]]
        result.append({"kind": kind, "language": language,
                       "benchmark": spread([x["seconds"] for x in theirs if x["alone"]]),
                       "build": spread([x["build_s"] for x in ours]),
                       "slot": spread([x["slot_s"] for x in ours])})
    return [x for x in result if x["benchmark"]["n"] or x["build"]["n"]]


def throughput(rows: list[Row], state: State) -> list[dict]:
    """Answers per hour of both on the same answers, and their ratio, by language and state of our cache."""
    result = []
    cores = state.data["machine"].get("cores") or os.cpu_count() or 1
    for name, one in sorted(state.data["passes"].items()):
        theirs = [state.data["theirs"][x]["seconds"] for x in one["members"] if x in state.data["theirs"]
                  and state.data["theirs"][x]["alone"]]
        entry = {"pass": name, "answers": len(one["members"]), "n": one["n"], "copies": one["copies"],
                 "wall_s": one["wall_s"], "per_hour": 3600 * one["n"] / one["wall_s"]}
        steady = steady_seconds(one, cores)
        entry["per_hour_steady"] = 3600 / steady if steady else None
        if theirs:
            mean = statistics.fmean(theirs)
            entry |= {"benchmark_n": len(theirs), "benchmark_mean_s": mean,
                      "benchmark_per_hour": 3600 / mean, "ratio": entry["per_hour"] * mean / 3600,
                      "ratio_steady": mean / steady if steady else None}
        result.append(entry)
    return result


def speedups(rows: list[Row], state: State) -> dict:
    """Both speedups of each answer that both accept, where the benchmark had the GPU for itself."""
    lines = []
    for row in rows:
        theirs, ours = state.data["theirs"].get(row["key"]), state.data["ours"].get(row["key"])
        if not theirs or not ours or not theirs["alone"] or ours["outcome"] != "accepted":
            continue
        runtime, reference = theirs.get("runtime") or -1, theirs.get("ref_runtime") or -1
        if accepted_by_benchmark(theirs) and runtime > 0 and reference > 0 and ours["speedup"]:
            lines.append({"file": row["file"], "benchmark": reference / runtime,
                          "kernelmill": ours["speedup"], "low": ours["speedup_low"],
                          "high": ours["speedup_high"], "benchmark_ms": runtime,
                          "kernelmill_ms": ours["candidate_ms"]})
    apart = [abs(x["kernelmill"] / x["benchmark"] - 1) for x in lines]
    return {"lines": lines, "median_relative_difference": statistics.median(apart) if apart else None}


def summary(options: argparse.Namespace, rows: list[Row], state: State) -> dict:
    theirs = [state.data["theirs"][x["key"]] for x in rows if x["key"] in state.data["theirs"]]
    return {
        "machine": state.data["machine"],
        "candidates": len(rows),
        "problems": len({(x["level"], x["problem_id"]) for x in rows}),
        "judged_by_benchmark": len(theirs),
        "of_these_alone": sum(x["alone"] for x in theirs),
        "judged_by_kernelmill": sum(x["key"] in state.data["ours"] for x in rows),
        "agreement": agreement(rows, state),
        "died": [x["file"] for x in rows if state.data["theirs"].get(x["key"], {}).get("died")],
        "timed_out": [x["file"] for x in rows if state.data["theirs"].get(x["key"], {}).get("timed_out")],
        "seconds": seconds_by_class(rows, state),
        "throughput": throughput(rows, state),
        "speedups": speedups(rows, state),
    }


def number(x: float | None, form: str = ".1f") -> str:
    return "-" if x is None else format(x, form)


def print_summary(s: dict, options: argparse.Namespace) -> None:
    machine = s["machine"]
    print(f"{machine.get('gpu', 'no GPU seen')}, {machine.get('cores')} cores, torch {machine.get('torch')}, "
          f"triton {machine.get('triton')}; benchmark at {machine.get('kernelbench', '?')}; "
          f"{machine.get('kernelmill', '?')}")
    print(f"{s['candidates']} answers to {s['problems']} problems; the benchmark judged "
          f"{s['judged_by_benchmark']}, {s['of_these_alone']} of them alone on the machine; kernelmill "
          f"{s['judged_by_kernelmill']}.")
    stand_ins = machine.get("stand_ins")
    if stand_ins:
        print(f"Stand-ins for modules that an evaluation does not use: {', '.join(stand_ins)}. They spare "
              "the benchmark the time of importing these.")
    print("Clock: time.monotonic of this script. Benchmark: from the start of a fresh process to its end "
          "(importing torch, building, 5 trials, 100 timed runs of answer and of reference). Its batch "
          "script imports more and, where a process dies, waits for its timeout: neither is counted here.")

    print("\nVerdicts")
    for name, count in s["agreement"]["counts"].items():
        print(f"  {name:26} {count:4}")
    for x in s["agreement"]["differences"]:
        print(f"  {x['what']}: {x['file']} ({x['kind']})\n    benchmark:  {x['benchmark']}\n"
              f"    kernelmill: {x['kernelmill']}" + (f"\n    known:      {x['note']}" if x["note"] else ""))
    if s["agreement"]["kernelmill_unlike_manifest"]:
        print("  kernelmill unlike the manifest: " + ", ".join(s["agreement"]["kernelmill_unlike_manifest"]))
    if s["died"]:
        print("  the benchmark's process died of: " + ", ".join(s["died"]))
    if s["timed_out"]:
        print(f"  the benchmark ran out of time with: {', '.join(s['timed_out'])} (what is known to hang is "
              f"cut off after {options.cut_hangs:g} s of {options.timeout:g} s and left out of all speeds)")

    print("\nSeconds for an answer (kernelmill: one pass from an empty cache; builds run beside each other)")
    print(f"  {'':22}{'benchmark':>26}{'kernelmill, build':>26}{'kernelmill, GPU':>26}")
    print(f"  {'':22}" + 3 * f"{'n':>8}{'median':>9}{'mean':>9}")
    for x in s["seconds"]:
        cells = "".join(f"{c['n']:8}{number(c.get('median'), '.2f'):>9}{number(c.get('mean'), '.2f'):>9}"
                        for c in (x["benchmark"], x["build"], x["slot"]))
        print(f"  {x['kind'] + ', ' + x['language']:22}{cells}")

    print("\nAnswers per hour, both on the same answers. Cold: nothing built, copies differ in a comment.\n"
          "Whole: the command from start to end. Full: while the pipe is full (between verdict number C and\n"
          "the last but C, C cores). The ratio takes the mean of the benchmark's seconds. Copies answer\n"
          "the same problems: what kernelmill keeps of one serves them all, the benchmark keeps nothing.")
    for x in s["throughput"]:
        print(f"  {x['pass']:12} {x['answers']} answers x {x['copies']} = {x['n']} in {x['wall_s']:.1f} s: "
              f"whole {x['per_hour']:.0f}, full {number(x['per_hour_steady'], '.0f')} an hour")
        if "ratio" in x:
            print(f"  {'':12} benchmark {x['benchmark_per_hour']:.1f} an hour (n = {x['benchmark_n']}, mean "
                  f"{x['benchmark_mean_s']:.1f} s): ratio {x['ratio']:.1f} whole, "
                  f"{number(x['ratio_steady'])} full")

    print("\nSpeedup over the reference where both accept (benchmark: mean of 100 CUDA events, L2 flushed)")
    for x in s["speedups"]["lines"]:
        print(f"  {x['file']:46} benchmark {x['benchmark']:6.2f}  kernelmill {x['kernelmill']:6.2f} "
              f"[{number(x['low'], '.2f')}, {number(x['high'], '.2f')}]  {x['benchmark_ms']:.3g} ms against "
              f"{number(x['kernelmill_ms'], '.3g')} ms")
    median = s["speedups"]["median_relative_difference"]
    if median is not None:
        print(f"  median relative difference {100 * median:.1f} % (n = {len(s['speedups']['lines'])})")


def describe_machine(options: argparse.Namespace, state: State) -> None:
    """Notes once what the figures depend on."""
    probe = ("import json, torch\n"
             "try:\n import triton; t = triton.__version__\nexcept ImportError: t = None\n"
             "print(json.dumps({'torch': torch.__version__, 'triton': t, 'gpu': torch.cuda.get_device_name(0)"
             " if torch.cuda.is_available() else None}))")
    done = subprocess.run([options.python, "-c", probe], capture_output=True, text=True, check=True)
    facts: dict = json.loads(done.stdout) | {"cores": os.cpu_count()}
    if options.kernelbench:
        # A copy without .git may carry its commit in a file; git would answer for a repository around it.
        note = options.kernelbench / "COMMIT"
        told = note.read_text() if note.exists() else subprocess.run(
            ["git", "--git-dir", options.kernelbench / ".git", "rev-parse", "--short", "HEAD"],
            capture_output=True, text=True).stdout
        facts["kernelbench"] = told.strip() or "an unknown commit"
    if options.kernelmill:
        told = subprocess.run([options.kernelmill, "version"], capture_output=True, text=True)
        facts["kernelmill"] = told.stdout.splitlines()[0] if told.stdout else "kernelmill"
    for key, value in facts.items():
        state.put("machine", key, value)


def print_plan(rows: list[Row], state: State) -> None:
    total = 0.0
    for row in rows:
        total += estimate_seconds(row)
        known = "done" if row["key"] in state.data["theirs"] else ""
        print(f"{total:7.0f} {estimate_seconds(row):5.0f} s  {row['input_mb']:6} MB  {row['kind']:10} "
              f"{row['language']:7} {row['file']:52} {known}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    path: Callable = pathlib.Path
    parser.add_argument("--kernelbench", type=path, help="a checkout of KernelBench")
    parser.add_argument("--problems", type=path, help="problems.jsonl; without it the checkout's problems")
    parser.add_argument("--kernelmill", type=path, help="the program")
    parser.add_argument("--candidates", type=path, default=HERE / "kernelbench_candidates")
    parser.add_argument("--state", type=path, required=True, help="file of results, continued when it exists")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch, for both")
    parser.add_argument("--only-theirs", action="store_true", help="run the benchmark alone")
    parser.add_argument("--only-ours", action="store_true", help="run kernelmill alone")
    parser.add_argument("--report", action="store_true", help="run nothing, print what is known")
    parser.add_argument("--plan", action="store_true", help="print order and guessed seconds, run nothing")
    parser.add_argument("--limit-seconds", type=float, help="start nothing that would end later")
    parser.add_argument("--levels", default="1,2,3", help="levels to take. Default: 1,2,3")
    parser.add_argument("--match", action="append", help="takes answers whose file matches; may be repeated")
    parser.add_argument("--max-input-gb", type=float, default=math.inf, help="leaves out larger problems")
    parser.add_argument("--timed", type=int, metavar="N",
                        help="the benchmark runs the first N alone, the others at once for their verdicts")
    parser.add_argument("--workers", type=int, default=8, help="how many at once after --timed. Default: 8")
    parser.add_argument("--gpu-gb", type=float, default=110, metavar="G",
                        help="memory of the GPU that those at once may take, as guessed. Default: 110")
    parser.add_argument("--timeout", type=float, default=300, help="the benchmark's, in s. Default: 300")
    parser.add_argument("--cut-hangs", type=float, default=45, metavar="S",
                        help="ends answers that are known to hang after S s. Default: 45")
    parser.add_argument("--at-least", type=int, default=64, metavar="N",
                        help="answers of a pass of ours, by copies. Default: 64")
    parser.add_argument("--no-passes", action="store_true", help="verdicts of ours only, no throughput")
    parser.add_argument("--backend", default="cuda", help="where kernelmill runs answers. Default: cuda")
    parser.add_argument("--judge-arg", action="append", default=[], metavar="ARG",
                        help="one more argument of kernelmill judge, as --judge-arg=--torch-mode")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    options = parser.parse_args(arguments)
    run_theirs_too = not (options.only_ours or options.report or options.plan)
    run_ours_too = not (options.only_theirs or options.report or options.plan)
    if run_theirs_too and not options.kernelbench:
        parser.error("the benchmark needs --kernelbench")
    if run_ours_too and not options.kernelmill:
        parser.error("kernelmill needs --kernelmill")
    if not (options.problems or options.kernelbench or options.report or options.plan):
        parser.error("problems come from --problems or --kernelbench")
    if options.kernelmill:
        options.kernelmill = options.kernelmill.resolve()
    options.theirs, options.ours = run_theirs_too, run_ours_too
    return options


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "--benchmark-worker":
        benchmark_worker(arguments[1])
        return 0
    options = parse(arguments)
    clock = Clock(options.limit_seconds)
    state = State(options.state)
    rows = load_candidates(options)
    if options.plan:
        print_plan(rows, state)
        return 0
    complete = True
    if options.theirs or options.ours:
        problems = load_problems(options.problems or options.kernelbench)
        describe_machine(options, state)
        if options.theirs:
            complete = run_theirs(options, rows, problems, state, clock) and complete
        if options.ours:
            ours = Ours(options, problems, clock)
            ours.import_tasks()
            complete = run_verdicts(ours, rows, state) and complete
            if not options.no_passes:
                complete = run_passes(options, ours, rows, state) and complete
    result = summary(options, rows, state) | {"complete": complete}
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print_summary(result, options)
        if not complete:
            print("\nNot everything ran: call again with the same --state to go on.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
