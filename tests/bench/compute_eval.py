#!/usr/bin/env python3
"""Runs the same solutions through `kernelmill judge` and through ComputeEval's own harness.

Of N problems of a datapack their own solutions are judged, which should pass, and stubs made of them, which
should fail: the solution without its kernel launches, or an empty file where it has none. Both programs get
the same file of solutions; the last lines are a table of what they agree on, and each difference with both
sides' words.

    tests/bench/compute_eval.py --problems 2026-1-problems.tar.gz --harness COMPUTE_EVAL_CHECKOUT --count 100
    tests/bench/compute_eval.py --problems problems.jsonl --round-trip
    tests/bench/compute_eval.py --problems problems.jsonl --build-only sm_90 --count 60

--build-only needs nvcc and no GPU: own solutions should build in the sandbox, and empty files should not.
What the suite's package imports and an evaluation never uses may be missing (openai, docker). Without
tree_sitter the harness searches source references as plain texts; the table says so.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import importlib.machinery
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types

UNUSED = ("openai", "anthropic", "docker", "dotenv", "kubernetes")
LAUNCH = re.compile(r"[\w:]+(?:<[^<>;{}]*>)?\s*<<<.*?>>>\s*\(.*?\)\s*;", re.DOTALL)
SHOWN = 240  # characters of each side's last words


def run(words: list, **more) -> subprocess.CompletedProcess:
    return subprocess.run([str(x) for x in words], text=True, capture_output=True, **more)


def stub_of(files: list[dict]) -> tuple[str, list[dict]]:
    """What compiles and computes nothing, where launches can be found; else what does not link."""
    hollow = [{"path": x["path"], "content": LAUNCH.sub(";", x["content"])} for x in files]
    if hollow != files:
        return "hollow", hollow
    return "empty", [{"path": x["path"], "content": "// nothing\n"} for x in files]


def spread(records: list[dict], count: int) -> list[dict]:
    """`count` of them, evenly from all groups, the same in each call."""
    groups = collections.defaultdict(list)
    for x in sorted(records, key=lambda x: x["task_id"]):
        groups[x["group"]].append(x)
    result = []
    while len(result) < count and any(groups.values()):
        for name in sorted(groups):
            rows = groups[name]
            if rows and len(result) < count:
                result.append(rows.pop(len(rows) // 2))
    return result


def imported_records(tasks: pathlib.Path) -> list[dict]:
    """Each task's own record, put together again from its folder."""
    result = []
    for path in sorted(tasks.rglob("suite.json")):
        folder, origin = path.parent, json.loads(path.read_text())
        record = origin["problem"]
        record["prompt"] = (folder / "prompt.md").read_bytes().decode()

        def fill(paths: list[str], part: str, folder: pathlib.Path = folder) -> list[dict]:
            return [{"path": x, "content": (folder / part / x).read_bytes().decode()} for x in paths]

        record["context_files"] = fill(record.get("context_files") or [], "context")
        record["test_files"] = fill(record.get("test_files") or [], "tests")
        record["baseline_solution"]["files"] = fill(record["baseline_solution"]["files"], "baseline")
        result.append(
            record | {"_release": origin["release"], "_id": json.loads((folder / "task.json").read_text())["id"]}
        )
    return result


def import_problems(options: argparse.Namespace, to: pathlib.Path) -> dict:
    words = [options.kernelmill, "task", "import", "compute-eval", options.problems, "--to", to, "--json"]
    for name in ("release", "group"):
        if getattr(options, name):
            words += [f"--{name}", getattr(options, name)]
    done = run(words)
    if done.returncode:
        sys.exit(f"compute_eval.py: the import failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def solutions_of(records: list[dict]) -> list[dict]:
    result = []
    for x in records:
        files = x["baseline_solution"]["files"]
        kind, stub = stub_of(files)
        for name, content in (("own", files), (kind, stub)):
            result.append(
                {"schema_version": 1, "type": "file", "task_id": x["task_id"], "files": content, "kind": name}
            )
    return result


def judge(options: argparse.Namespace, tasks: pathlib.Path, folder: pathlib.Path, solutions: list[dict]) -> dict:
    (folder / "solutions.jsonl").write_text("".join(json.dumps(x) + "\n" for x in solutions))
    graded = folder / "graded.jsonl"
    words = [options.kernelmill, "judge", folder / "solutions.jsonl", "--suite", "compute-eval"]
    words += ["--graded", graded, "--root", tasks, "--backend", options.backend, "--release", options.release]
    if not options.timing:
        words.append("--no-timing")
    begun = time.monotonic()
    done = run(words)
    seconds = time.monotonic() - begun
    if done.returncode or not graded.exists():
        sys.exit(f"compute_eval.py: judge failed ({done.returncode}): {done.stderr[-3000:]}")
    verdicts = [json.loads(x) for x in done.stdout.splitlines()]
    lines = [json.loads(x) for x in graded.read_text().splitlines()]
    return {"seconds": seconds, "lines": lines, "verdicts": verdicts}


def build_only(options: argparse.Namespace, tasks: pathlib.Path, folder: pathlib.Path, records: list[dict]) -> int:
    """Builds own solutions, and for every fifth problem an empty file, without a GPU."""
    counts: dict = collections.Counter()
    wrong = 0
    for index, x in enumerate(records):
        kinds = [("own", x["baseline_solution"]["files"])]
        if index % 5 == 0:
            kinds.append(("empty", [{"path": y["path"], "content": "// nothing\n"} for y in kinds[0][1]]))
        for kind, files in kinds:
            answer = folder / ("answer" + pathlib.PurePosixPath(files[0]["path"]).suffix)
            mark = "#" if answer.suffix == ".py" else "//"
            answer.write_text("".join(f"{mark} file: {y['path']}\n{y['content']}\n" for y in files))
            words = [options.kernelmill, "build", answer, "--task", x["_id"], "--root", tasks, "--json"]
            done = run([*words, "--backend", "cuda", "--arch", options.build_only])
            try:
                document = json.loads(done.stdout or done.stderr)
            except json.JSONDecodeError:
                document = {"error": {"message": done.stderr[-300:]}}
            built = document.get("compiled") is True
            counts[kind, "built" if built else "not built"] += 1
            if built != (kind == "own"):
                wrong += 1
                fault = document.get("error") or {}
                said = document.get("log") or fault.get("message") or "it builds"
                print(f"{x['task_id']} ({kind}): {' '.join(str(said).split())[-SHOWN:]}", flush=True)
    for (kind, word), n in sorted(counts.items()):
        print(f"{kind:8}{word:12}{n:6}")
    return wrong


# -- the suite's own harness, in a process of its own ------------------------------------------------------


class Absent(importlib.machinery.PathFinder):
    """Stands in for packages that the harness imports and an evaluation does not use."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split(".")[0] not in UNUSED:
            return None
        return importlib.machinery.ModuleSpec(name, cls(), is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: type(name, (Exception,), {})
        return module

    def exec_module(self, module):
        pass


class PlainText:
    """Searches source references as plain texts, where there is no tree_sitter."""

    def find_matching_subtrees(self, content, targets):
        return [(x, content.find(x)) for x in targets if x in content]


def load_harness(checkout: str) -> str:
    """Makes the suite's package importable; returns how it searches source references."""
    sys.path.insert(0, checkout)
    sys.meta_path.append(Absent)
    try:
        from tree_sitter_language_pack import get_parser

        get_parser("cuda")  # later versions of the package load grammars from a network
        return "tree_sitter"
    except Exception:
        parsing = types.ModuleType("compute_eval.utils.parsing")
        parsing.get_most_likely_language = lambda path, content: PlainText()
        sys.modules["compute_eval.utils.parsing"] = parsing
        return "plain texts"


def harness(checkout: str, profile: str | None) -> None:
    """Reads pairs of problem and solutions as JSON lines, and prints the suite's graded solutions."""
    references = load_harness(checkout)
    from compute_eval.data.data_pack import ProblemDatapack, SolutionDatapack
    from compute_eval.evaluators import create_evaluator

    print(json.dumps({"references": references}), flush=True)

    def evaluate(line: str) -> list[str]:
        pair = json.loads(line)
        problem = ProblemDatapack._adapter.validate_python(pair["problem"])
        solutions = [SolutionDatapack._adapter.validate_python(x) for x in pair["solutions"]]
        evaluator = create_evaluator(problem=problem, eval_mode="local", profile_mode=profile)
        graded = evaluator.evaluate_solutions(problem, solutions)
        return [x.model_dump_json(exclude={"problem", "solution"}) for x in graded]

    # As the harness's own command does it: builds side by side, and one process at a time on a GPU.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(evaluate, list(sys.stdin)):
            print("\n".join(lines), flush=True)


def build_profiler(options: argparse.Namespace, folder: pathlib.Path) -> dict:
    """Environment of a harness that times: its own profiler, built beside its sources' copy."""
    if not options.timing or options.profile != "cupti" or "CUPTI_PROFILER_LIB" in os.environ:
        return dict(os.environ)
    copy = folder / "cuda_tools"
    shutil.copytree(options.harness / "compute_eval/cuda_tools", copy, dirs_exist_ok=True)
    done = run(["make", "-C", copy])
    if done.returncode:
        sys.exit(f"compute_eval.py: the harness's profiler does not build: {done.stderr[-1000:]}")
    return os.environ | {"CUPTI_PROFILER_LIB": str((copy / "libcuda_profile.so").resolve())}


def run_harness(options: argparse.Namespace, folder: pathlib.Path, records: list[dict], solutions: list[dict]) -> dict:
    by_id = {x["task_id"]: x for x in records}
    pairs = []
    for x in solutions:  # neighbours are of one problem
        if not pairs or pairs[-1]["problem"]["task_id"] != x["task_id"]:
            pairs.append({"problem": by_id[x["task_id"]], "solutions": []})
        pairs[-1]["solutions"].append(x)
    words = [options.python, __file__, "--as-harness", options.harness]
    if options.timing:
        words += ["--profile", options.profile]
    begun = time.monotonic()
    done = run(words, input="".join(json.dumps(x) + "\n" for x in pairs), env=build_profiler(options, folder))
    lines = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
    if not lines or len(lines) != len(solutions) + 1:
        sys.exit(f"compute_eval.py: the harness failed after {len(lines)} lines: {done.stderr[-3000:]}")
    return {"seconds": time.monotonic() - begun, "references": lines[0]["references"], "lines": lines[1:]}


# -- what came out -----------------------------------------------------------------------------------------


def load_results(folders: list[pathlib.Path]) -> tuple[list[dict], dict, dict | None]:
    """Solutions, ours and theirs of one or more calls, as --out kept them."""
    solutions: list = []
    sides: dict = {"ours": {"seconds": 0, "lines": []}, "theirs": {"seconds": 0, "lines": []}}
    for folder in folders:
        solutions += [json.loads(x) for x in (folder / "solutions.jsonl").read_text().splitlines()]
        for name, side in sides.items():
            path = folder / f"{name}.json"
            if path.exists():
                one = json.loads(path.read_text())
                side["seconds"] += one["seconds"]
                side["lines"] += one["lines"]
                side["references"] = one.get("references")
    theirs = sides["theirs"] if len(sides["theirs"]["lines"]) == len(solutions) else None
    return solutions, sides["ours"], theirs


def word(x: dict) -> str:
    return "skipped" if x["skipped"] else "passed" if x["passed"] else "failed"


def last_words(x: dict) -> str:
    text = " ".join((x.get("test_output") or x.get("build_output") or "").split())
    return text[-SHOWN:]


def print_table(solutions: list[dict], ours: dict, theirs: dict | None) -> int:
    kinds: dict = collections.defaultdict(collections.Counter)
    differences = []
    for solution, a, b in zip(solutions, ours["lines"], (theirs or ours)["lines"], strict=True):
        row = kinds[solution["kind"]]
        row["solutions"] += 1
        row["ours " + word(a)] += 1
        row["theirs " + word(b)] += 1
        row["same"] += word(a) == word(b)
        if word(a) != word(b):
            differences.append((solution, a, b))
    for solution, a, b in differences:
        print(f"\n{solution['task_id']} ({solution['kind']}): ours {word(a)}, theirs {word(b)}")
        print(f"  ours:   {last_words(a)}\n  theirs: {last_words(b)}")
    names = ["solutions", "ours passed", "ours failed", "ours skipped"]
    if theirs:
        names += ["theirs passed", "theirs failed", "theirs skipped", "same"]
    print("\n" + "kind".ljust(8) + "".join(x.rjust(16) for x in names))
    for kind, row in kinds.items():
        print(kind.ljust(8) + "".join(str(row[x]).rjust(16) for x in names))
    timed = [x for x in ours["lines"] if x["speedup"] is not None]
    print(f"\nours: {ours['seconds']:.0f} s, {len(timed)} timed")
    if theirs:
        print(f"theirs: {theirs['seconds']:.0f} s, source references by {theirs['references']}")
        speeds = [
            (s["task_id"], a["speedup"], b["speedup"])
            for s, a, b in zip(solutions, ours["lines"], theirs["lines"], strict=True)
            if s["kind"] == "own" and a["speedup"] and b["speedup"]
        ]
        if speeds:
            print("\nspeedup of a solution beside itself: 1 is right")
            for title, at in (("ours", 1), ("theirs", 2)):
                values = sorted(x[at] for x in speeds)
                tell = [values[int((len(values) - 1) * p)] for p in (0, 0.1, 0.5, 0.9, 1)]
                print(f"  {title:7}" + "  ".join(f"{x:.3f}" for x in tell) + "   (least, 10 %, median, 90 %, most)")
    return len(differences)


def check_graded(options: argparse.Namespace, lines: list[dict]) -> None:
    """Our lines through the suite's own model."""
    words = [options.python, __file__, "--as-harness", options.harness, "--as-reader"]
    done = run(words, input="".join(json.dumps(x) + "\n" for x in lines))
    said = done.stdout.strip() or done.stderr[-800:]
    print(f"graded solutions that the suite's own model reads: {said} of {len(lines)}")


def read_graded(checkout: str) -> None:
    load_harness(checkout)
    from compute_eval.data.data_model import GradedSolution

    print(sum(1 for x in sys.stdin if GradedSolution.model_validate(json.loads(x))))


def originals(path: pathlib.Path) -> dict:
    """Problems as the suite's files have them, by release and id, read without Kernelmill."""
    import tarfile

    result = {}
    files = [path] if path.is_file() else sorted(path.rglob("*-problems.tar.gz")) + sorted(path.rglob("problems.jsonl"))
    for file in files:
        if file.name.endswith(".gz"):
            with tarfile.open(file) as pack:
                lines = pack.extractfile("problems.jsonl").read().decode()
                release = json.load(pack.extractfile("metadata.json"))["release"]
        else:
            lines, beside = file.read_bytes().decode(), file.parent / "metadata.json"
            release = json.loads(beside.read_text())["release"] if beside.exists() else "internal"
        for line in lines.split("\n"):
            if line.strip():
                x = json.loads(line, strict=False)
                result[release, x["task_id"]] = x
    return result


def round_trip(options: argparse.Namespace, tasks: pathlib.Path, counts: dict) -> int:
    """Whether what a task's folder keeps is the suite's problem again, by its own model where there is one."""
    model = None
    if options.harness:
        load_harness(str(options.harness))
        from compute_eval.data.data_pack import ProblemDatapack

        model = ProblemDatapack._adapter
    given, same, different = originals(options.problems), 0, []
    for x in imported_records(tasks):
        key = x.pop("_release"), x["task_id"]
        x.pop("_id")
        a, b = given[key], x
        if model:
            a, b = model.validate_python(a), model.validate_python(b)
        same += a == b
        if a != b:
            different.append(key)
    print(f"found {len(given)}, imported {counts['imported']}, left out {counts['left_out']} {counts['reasons']}")
    by = " by the suite's own model" if model else ""
    print(f"round trip{by}: {same} the same, {len(different)} not: {different[:5]}")
    return len(different)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = pathlib.Path
    bin_dir = path(os.environ.get("KERNELMILL_BIN_DIR", "build/bin"))
    parser.add_argument("--problems", type=path, help="a datapack, a problems.jsonl or a folder of them")
    parser.add_argument("--harness", type=path, help="a checkout of compute-eval; without it only ours is run")
    parser.add_argument("--kernelmill", type=path, default=bin_dir / "kernelmill")
    parser.add_argument("--python", default=sys.executable, help="that has pydantic: runs the harness")
    parser.add_argument("--count", type=int, default=100, help="problems")
    parser.add_argument("--first", type=int, default=0, help="leaves out so many of them: for calls with a time limit")
    parser.add_argument("--merge", type=path, nargs="+", help="prints the table of several calls' --out folders")
    parser.add_argument("--release", help="of a list that does not say its own, and of a folder of several")
    parser.add_argument("--group", help="only this one")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--timing", action="store_true", help="times on both sides")
    parser.add_argument("--profile", default="cupti", help="the harness's profiler")
    parser.add_argument("--out", type=path, help="folder for the solutions and what both sides said")
    parser.add_argument("--round-trip", action="store_true", help="imports all, compares with the files, judges none")
    parser.add_argument("--build-only", metavar="ARCH", help="such as sm_90: builds without a GPU, judges none")
    parser.add_argument("--as-harness", help=argparse.SUPPRESS)
    parser.add_argument("--as-reader", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = parse()
    if options.as_reader:
        read_graded(options.as_harness)
        return 0
    if options.as_harness:
        harness(options.as_harness, options.profile if "--profile" in sys.argv else None)
        return 0
    if options.merge:
        print_table(*load_results(options.merge))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or pathlib.Path(scratch) / "out"
        folder.mkdir(parents=True, exist_ok=True)
        tasks = pathlib.Path(scratch) / "tasks"
        counts = import_problems(options, tasks)
        if options.round_trip:
            return 1 if round_trip(options, tasks, counts) else 0
        records = spread(imported_records(tasks), options.first + options.count)[options.first :]
        if options.build_only:
            return 1 if build_only(options, tasks, folder, records) else 0
        options.release = records[0]["_release"]
        for x in records:
            del x["_release"], x["_id"]
        solutions = solutions_of(records)
        print(f"{len(records)} problems, {len(solutions)} solutions", file=sys.stderr)
        ours = judge(options, tasks, folder, solutions)
        (folder / "ours.json").write_text(json.dumps(ours))
        if options.harness:
            theirs = run_harness(options, folder, records, solutions)
            (folder / "theirs.json").write_text(json.dumps(theirs))
            check_graded(options, ours["lines"])
        print_table(*load_results([folder]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
