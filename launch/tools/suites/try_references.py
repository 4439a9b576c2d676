#!/usr/bin/python3
"""Judges imported tasks by their own references, each at one small shape: the reference must be right, zeros wrong.

    try_references.py ROOT [GLOB ...] [--backend cpu] [--most-elements N] [--mode suite] [--keep DIR]

ROOT is a folder that `kernelmill task import --to ROOT` wrote. Run by a python with torch 2: shapes are found out on
the device `meta`. A task whose smallest shape has more elements is counted and left out. Exit code 1 when a task is not
as it must be."""

import argparse
import collections
import fnmatch
import json
import pathlib
import re
import shutil
import sys
import tempfile

from answers import ANSWERS, default_kernelmill, judge, problem_of, tasks_of

CASE = re.compile(r"^AXIS_case = \d+$", re.M)


def elements_of(text):
    """Of the tensors that get_inputs() makes; None where that cannot be found out."""
    import torch

    space = {"__name__": "problem", "__file__": "problem.py"}
    try:
        exec(compile(text, "problem.py", "exec"), space)
        with torch.device("meta"):
            given = space["get_inputs"]()
        return sum(x.numel() for x in given if isinstance(x, torch.Tensor))
    except Exception:  # whatever a problem raises that looks at values
        return None


def volume_of(value):
    """How large a case may be: the product of its whole numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, dict, list, tuple)):
        return 1
    if isinstance(value, int):
        return max(1, value)
    result = 1
    for x in value.values() if isinstance(value, dict) else value:
        result *= volume_of(x)
    return result


def smallest(text):
    """The problem at the smallest of its cases."""
    found = re.search(r"^CASES = (\[.*?^\])$", text, re.M | re.S)
    if not found:
        return text
    cases = eval(found[1])
    volumes = [len(x[1]) if isinstance(x, list) and isinstance(x[-1], str) else volume_of(x) for x in cases]
    at = 0 if isinstance(cases[0], list) else volumes.index(min(volumes))
    return CASE.sub(f"AXIS_case = {at}", text)


def write_task(root, into, task, text):
    folder = pathlib.Path(into) / task
    shutil.copytree(pathlib.Path(root) / task, folder)
    document = json.loads((folder / "task.json").read_text())
    document.pop("variants", None)
    (folder / "task.json").write_text(json.dumps(document))
    (folder / "problem.py").write_text(text, encoding="utf-8")
    return "tolerance" in document


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("globs", nargs="*", default=["*"])
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--most-elements", type=int, default=1 << 20)
    parser.add_argument("--mode", default="honest", choices=("honest", "suite", "kernelbench"))
    parser.add_argument("--kernelmill", default=default_kernelmill())
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--keep", help="folder for the tasks and answers")
    options = parser.parse_args()
    counts, wrong, batch = collections.Counter(), [], []
    with tempfile.TemporaryDirectory() as scratch:
        place = pathlib.Path(options.keep or scratch)
        for task in tasks_of(options.kernelmill, options.root):
            if not any(fnmatch.fnmatch(task, x) for x in options.globs):
                continue
            text = smallest(problem_of(options.root, task))
            size = elements_of(text)
            if size is None or size > options.most_elements:
                counts["not tried: " + ("shapes are not known beforehand" if size is None else "too large")] += 1
                continue
            if not write_task(options.root, place / "tasks", task, text) and options.mode == "suite":
                counts["not tried: the suite has no tolerance"] += 1
                continue
            for name in ("itself", "zeros"):
                file = place / "answers" / f"{task.replace('/', '.')}.{name}.py"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text + ANSWERS[name], encoding="utf-8")
                batch.append({"task": task, "file": str(file), "name": name})
        if not batch:
            sys.exit(f"no task to try: {dict(counts)}")
        (place / "batch.ndjson").write_text("".join(json.dumps(x) + "\n" for x in batch))
        lines = judge(
            [
                options.kernelmill,
                "judge",
                place / "batch.ndjson",
                "--root",
                place / "tasks",
                "--backend",
                options.backend,
            ]
            + ["--no-timing", "--torch-mode", options.mode, "--python", options.python]
        )
    for x in lines:
        fault = (x.get("error") or {}).get("category") or ""
        as_it_must = x["correct"] == (x["name"] == "itself")
        counts[f"{x['name']}: " + ("right" if x["correct"] else f"wrong ({fault})")] += 1
        if not as_it_must:
            wrong.append(f"{x['task']} {x['name']}: {fault}: {(x.get('error') or {}).get('message', '')[:200]}")
    print("\n".join(sorted(wrong)))
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    print(f"{len(lines) // 2} tasks tried, {len(wrong)} answers not as they must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
