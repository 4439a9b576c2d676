"""The benchmark's side: each answer in a fresh process with an empty build folder."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from side_by_side.answers import Clock, Room, Row, State, estimate_seconds, gpu_mb, say, stop_group

WORKER = pathlib.Path(__file__).resolve().parent / "worker.py"


def evaluate_with_benchmark(options: argparse.Namespace, row: Row, problem: str, alone: bool) -> dict:
    """Runs one answer in a fresh process and returns its result with the seconds from start to end."""
    limit = min(options.timeout, options.cut_hangs) if row.get("hangs") else options.timeout
    with tempfile.TemporaryDirectory(prefix="kernelbench-") as folder:
        base = pathlib.Path(folder)
        (base / "build").mkdir()
        request = {
            "kernelbench": str(options.kernelbench.resolve()),
            "problem": problem,
            "answer": row["source"],
            "build": str(base / "build"),
            "result": str(base / "result.json"),
            "backend": "triton" if row["language"] == "triton" else "cuda",
        }
        (base / "request.json").write_text(json.dumps(request))
        environment = dict(os.environ, TRITON_CACHE_DIR=str(base / "triton"))
        started = time.monotonic()
        with open(base / "output", "wb") as output:
            process = subprocess.Popen(
                [options.python, str(WORKER), str(base / "request.json")],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
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
            result = {
                "compiled": False,
                "correctness": False,
                "metadata": {"error": why} if late else {"error": why, "output": tail},
            }
        cut = late and limit < options.timeout
        return result | {
            "seconds": seconds,
            "alone": alone,
            "timed_out": late,
            "cut": cut,
            "died": not late and not result_file.exists(),
        }


def run_theirs(options: argparse.Namespace, rows: list[Row], problems: dict, state: State, clock: Clock) -> bool:
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
        say(
            f"benchmark {verdict} {row['file']} in {result['seconds']:.1f} s"
            + ("" if alone else f" (beside {options.workers - 1} others)")
        )
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
    for key in ("error", "compilation_error", "cuda_error", "other_error", "runtime_error", "correctness_issue"):
        if data.get(key):
            text = f"{key}: {data[key]}"
            if key == "correctness_issue" and data.get("max_difference"):
                text += f", largest difference {max(map(float, data['max_difference'])):.3g}"
            return " ".join(text.split())[-220:]
    return "rejected" if result["compiled"] else "did not compile"
