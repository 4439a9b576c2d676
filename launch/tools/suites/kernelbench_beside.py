#!/usr/bin/python3
"""Holds our verdicts of imported KernelBench tasks against KernelBench's own evaluation of the same answers.

    kernelbench_beside.py CLONE ROOT --out DIR [--level 1] [--problems 1,19,23] [--backend cuda] [--mode kernelbench]

CLONE is a checkout of KernelBench, ROOT a folder that `kernelmill task import kernelbench --to ROOT` wrote. Each
problem gets five answers made of its own text: itself, zeros, scaled by 1.05, rounded to bf16, and one that fails. They
are written to DIR/run as KernelBench names its generations, so DIR/run/eval_results.json is ours; DIR/theirs.json is
KernelBench's. Prints a table of differences last. Packages of KernelBench's that are not installed are replaced by
empty ones. With `--backend cpu` its harness runs on a CPU: calls to torch.cuda do nothing."""

import argparse
import collections
import contextlib
import importlib
import json
import pathlib
import re
import subprocess
import sys
import types

from answers import ANSWERS, default_kernelmill, problem_of, tasks_of


class Anything(types.ModuleType):
    """In the place of a package that is not installed."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Model if name == "BaseModel" else Anything(name)

    def __call__(self, *_, **__):
        return self


class Model:
    """As much of pydantic's as a result needs."""

    def __init__(self, **values):
        for key in getattr(type(self), "__annotations__", {}):
            default = getattr(type(self), key, None)
            setattr(self, key, dict(default) if isinstance(default, dict) else default)
        self.__dict__.update(values)


def harness_of(clone, backend):
    """KernelBench's module `eval`."""
    sys.path.insert(0, str(pathlib.Path(clone) / "src"))
    for _ in range(20):
        try:
            found = importlib.import_module("kernelbench.eval")
            break
        except ModuleNotFoundError as e:
            print(f"without {e.name}, which is not installed", file=sys.stderr)
            sys.modules[e.name] = Anything(e.name)
            if e.name == "datasets":
                sys.modules["datasets"].load_dataset = None
    else:
        sys.exit("KernelBench cannot be imported")
    if backend == "cpu":
        import torch

        for name in ("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats"):
            setattr(torch.cuda, name, lambda *_, **__: None)
        torch.cuda.is_available = lambda: True
        torch.cuda.device = lambda *_: contextlib.nullcontext()
        torch.cuda.get_device_name = lambda *_, **__: "cpu"
        importlib.import_module("kernelbench.utils").get_gpu_vendor = lambda *_, **__: "nvidia"
    return found


def worker(options):
    """Reads pairs of paths, one a line, and prints KernelBench's verdict of each."""
    import torch

    harness = harness_of(options.clone, options.backend)
    device = torch.device("cuda:0" if options.backend == "cuda" else "cpu")
    for line in sys.stdin:
        pair = json.loads(line)
        try:
            x = harness.eval_kernel_against_ref(
                pathlib.Path(pair["problem"]).read_text(encoding="utf-8"),
                pathlib.Path(pair["answer"]).read_text(encoding="utf-8"),
                num_correct_trials=5,
                device=device,
                build_dir=options.out + "/build",
            )
            verdict = {"compiled": bool(x.compiled), "correct": bool(x.correctness), "error": ""}
            verdict["error"] = str(x.metadata.get("runtime_error_name") or x.metadata.get("correctness_issue") or "")
        except Exception as e:  # of the harness; a problem that it cannot run is a difference, too
            verdict = {"compiled": False, "correct": False, "error": f"harness: {type(e).__name__}: {e}"[:200]}
        print("verdict " + json.dumps({**pair, **verdict}), flush=True)


def theirs(options, pairs):
    """In a process of its own, which a fault of a GPU may end; then the next one goes on behind it."""
    result, left = [], list(pairs)
    while left:
        lines = "".join(json.dumps(x) + "\n" for x in left)
        words = [
            sys.executable,
            __file__,
            options.clone,
            options.root,
            "--out",
            options.out,
            "--backend",
            options.backend,
        ]
        done = subprocess.run([*words, "--worker"], input=lines, stdout=subprocess.PIPE, text=True)
        found = [json.loads(x[8:]) for x in done.stdout.splitlines() if x.startswith("verdict ")]
        result += found
        left = left[len(found) :]
        if left and len(found) < len(pairs):
            result.append({**left.pop(0), "compiled": False, "correct": False, "error": "the harness's process ended"})
    return result


def ours(options, folder):
    words = [options.kernelmill, "judge", folder, "--suite", "kernelbench", "--root", options.root, "--no-timing"]
    words += ["--backend", options.backend, "--torch-mode", options.mode, "--python", options.python]
    with open(options.out + "/verdicts.ndjson", "w", encoding="utf-8") as file:
        done = subprocess.run(words, stdout=file)
    if done.returncode:
        sys.exit(f"judge ended with {done.returncode}")
    with open(options.out + "/verdicts.ndjson", encoding="utf-8") as file:
        return {x["name"]: x for x in map(json.loads, file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone")
    parser.add_argument("root")
    parser.add_argument("--out", required=True)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--problems", default="", help="numbers, with commas between; default: all")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--mode", default="kernelbench", choices=("kernelbench", "honest"))
    parser.add_argument("--kernelmill", default=default_kernelmill())
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options)
    wanted = {int(x) for x in options.problems.split(",") if x}
    folder = pathlib.Path(options.out) / "run"
    folder.mkdir(parents=True, exist_ok=True)
    (pathlib.Path(options.out) / "build").mkdir(exist_ok=True)
    pairs = []
    for task in tasks_of(options.kernelmill, options.root):
        found = re.fullmatch(r"kernelbench/level(\d+)/(\d+)_.*", task)
        if not found or int(found[1]) != options.level or wanted and int(found[2]) not in wanted:
            continue
        for sample, name in enumerate(ANSWERS):
            file = folder / f"level_{found[1]}_problem_{found[2]}_sample_{sample}_kernel.py"
            file.write_text(problem_of(options.root, task) + ANSWERS[name], encoding="utf-8")
            problem = pathlib.Path(options.root) / task / "problem.py"
            pairs.append({"task": task, "name": name, "problem": str(problem), "answer": str(file)})
    if not pairs:
        sys.exit("no such problem is imported")
    mine, other = ours(options, folder), theirs(options, pairs)
    (pathlib.Path(options.out) / "theirs.json").write_text(json.dumps(other, indent=1))
    counts, rows = collections.Counter(), []
    for x in other:
        verdict = mine[pathlib.Path(x["answer"]).name]
        counts[(x["name"], x["correct"], verdict["correct"])] += 1
        if x["correct"] != verdict["correct"]:
            fault = verdict.get("error") or {}
            rows.append(f"{x['task']:60} {x['name']:8} theirs {x['correct']!s:5} ours {verdict['correct']!s:5} "
                        f"{x['error'][:60]} | {fault.get('category', '')} {fault.get('message', '')[:80]}")  # fmt: skip
    print("\n".join(rows))
    print(f"{'answer':10} {'theirs':>6} {'ours':>6} {'count':>6}")
    for (name, they, we), count in sorted(counts.items()):
        print(f"{name:10} {they!s:>6} {we!s:>6} {count:6}")
    print(f"{len(other)} verdicts, {len(rows)} differ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
