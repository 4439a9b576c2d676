"""Answers, what is known of them, and what both sides share."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

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
    for pattern in options.match or ():
        if not any(fnmatch.fnmatch(x["file"], pattern) for x in rows):
            sys.exit(
                f"--match {pattern}: no answer's file is like that; they are {rows[0]['file']} and the like, "
                f"so try '*{pattern}*'"
            )
    return [
        x
        for x in rows
        if x["level"] in levels
        and x["input_mb"] <= 1000 * options.max_input_gb
        and (not options.match or any(fnmatch.fnmatch(x["file"], p) for p in options.match))
    ]


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
