"""Our side: `kernelmill judge` on batches of answers."""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from side_by_side.answers import Clock, Row, State, say, stop_group


def read_verdict(line: str) -> dict:
    """Takes from a line of `kernelmill judge` what is compared here. The only place that knows its form."""
    record = json.loads(line)
    timing = record.get("timing") or {}
    speedup = timing.get("speedup") or {}
    findings = [
        x["rule"] for x in (record.get("integrity") or {}).get("findings", []) if x.get("severity") == "critical"
    ]
    fault = record.get("error") or {}
    return {
        "name": record["name"],
        "outcome": record["outcome"],
        "category": record.get("category", ""),
        "findings": findings,
        "message": both_ends(" ".join(str(fault.get("message", "")).split())),
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


def both_ends(text: str, length: int = 300) -> str:
    """Some say first what is wrong, as torch of memory, others last."""
    return text if len(text) <= 2 * length else f"{text[:length]} ... {text[-length:]}"


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
        subprocess.run(
            [self.options.kernelmill, "task", "import", "kernelbench", source, "--to", tasks],
            check=True,
            stdout=sys.stderr,
        )

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
        command = [
            str(self.options.kernelmill),
            "judge",
            str(batch),
            "--backend",
            self.options.backend,
            "--root",
            str(self.base / "tasks"),
            "--python",
            self.options.python,
            *self.options.judge_arg,
        ]
        environment = dict(os.environ, XDG_CACHE_HOME=str(folder), TRITON_CACHE_DIR=str(folder / "triton"))
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
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
            arrivals = [
                (seconds, verdict["cached"], verdict["build_s"], verdict["slot_s"])
                for seconds, verdict in ours.judge(batch, f"cache-{language}", kind == "cold")
            ]
            wall = time.monotonic() - began
            if len(arrivals) != len(chosen) * copies:
                say(f"kernelmill: the pass {name} was cut off after {len(arrivals)} answers; it is not kept")
                return False
            state.put(
                "passes",
                name,
                {"members": members, "copies": copies, "n": len(arrivals), "wall_s": wall, "arrivals": arrivals},
            )
            say(f"kernelmill {name}: {len(arrivals)} answers in {wall:.1f} s")
    return True
