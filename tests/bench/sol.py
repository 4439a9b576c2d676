#!/usr/bin/env python3
"""Judges problems of SOL-ExecBench's form by Kernelmill and, beside it, by the suite's own driver.

Of each workload three answers are judged: `same`, which is the reference; `zeros`, which computes and returns zeros;
`narrow`, which rounds its floating inputs to the next narrower type. A reference must pass, zeros must not.

    python3 tests/bench/sol.py PATH [PATH ...] --kernelmill build/bin/kernelmill --python venv/bin/python
    python3 tests/bench/sol.py PATH --backend cuda --count 50 --types bfloat16,float8 --harness SOL-ExecBench --timing

Without --count the smallest workload of each definition is judged, as far as its tensors have at most --most-mib; with
it the first N workloads whose tensors are of --types. A table comes last. Exit code 1: a reference failed, zeros
passed, or the suite's driver said something else of either.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

BYTES = {"float64": 8, "float32": 4, "int64": 8, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}
ANSWERS = ("same", "zeros", "narrow")
COPIES = ("", None, "unchanged")  # right answers that nothing is paid for
NARROWER = """
def rounded(x):
    if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.dim() == 0:
        return x
    steps = {torch.float64: 23, torch.float32: 10, torch.float16: 7, torch.bfloat16: 4}.get(x.dtype)
    if steps is None:
        return x.float().to(torch.float8_e5m2).float().to(x.dtype) if x.element_size() == 1 else x
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    mantissa, exponent = torch.frexp(x.to(kind))
    made = torch.ldexp(torch.round(mantissa * 2.0 ** (steps + 1)) / 2.0 ** (steps + 1), exponent).to(x.dtype)
    return torch.where(torch.isfinite(x), made, x)
"""


@dataclass
class Case:
    name: str
    folder: pathlib.Path  # with definition.json and workload.jsonl of one line
    definition: dict
    workload: dict
    size: int  # bytes of its tensors
    ours: dict[str, str] = field(default_factory=dict)
    theirs: dict[str, str] = field(default_factory=dict)

    @property
    def task(self) -> str:
        return f"sol-execbench/{self.folder.parent.name}/{re.sub(r'[^A-Za-z0-9_.+-]', '_', self.definition['name'])}"

    @property
    def types(self) -> str:
        tensors = [x for part in ("inputs", "outputs") for x in self.definition[part].values()]
        return ",".join(sorted({x["dtype"] for x in tensors if x["shape"] is not None}))


def size_of(definition: dict, axes: dict) -> int:
    """Bytes of all tensors at the axes of a workload."""
    values = {k: x["value"] for k, x in definition["axes"].items() if x["type"] == "const"} | axes
    for name, x in definition["axes"].items():
        if x["type"] == "expr" and re.fullmatch(r"[\w\s+*/%()-]+", x["expression"]):
            values[name] = int(eval(x["expression"], {"__builtins__": {}}, dict(values)))
    tensors = [x for part in ("inputs", "outputs") for x in definition[part].values() if x["shape"] is not None]
    return sum(
        math.prod(int(values.get(n, n if n.isdigit() else 1)) for n in x["shape"]) * BYTES.get(x["dtype"], 1)
        for x in tensors
    )


def problems_in(path: pathlib.Path):
    """(definition, workloads) of every folder with both."""
    for file in sorted(path.rglob("definition.json")):
        lines = file.parent / "workload.jsonl"
        if lines.is_file():
            yield json.loads(file.read_text()), [json.loads(x) for x in lines.read_text().splitlines() if x.strip()]


def chosen(options, root: pathlib.Path) -> list[Case]:
    """The workloads that are judged, each in a folder of its own."""
    result, seen = [], set()
    for path in options.path:
        for definition, workloads in problems_in(path):
            if definition["name"] in seen or not fnmatch.fnmatch(definition["name"], options.definition):
                continue
            seen.add(definition["name"])
            sized = [(size_of(definition, x["axes"]), i, x) for i, x in enumerate(workloads)]
            for size, i, workload in sized if options.count else [min(sized, key=lambda x: x[:2])]:
                case = Case(f"{definition['name'][:48]}:{i}", root / f"w{i}" / "p", definition, workload, size)
                if any(x["type"] == "safetensors" for x in workload["inputs"].values()):
                    continue
                if options.types and not any(t in case.types for t in options.types.split(",")):
                    continue
                if size > options.most_mib << 20 or options.count and len(result) >= options.count:
                    continue
                case.folder = root / f"w{i}" / re.sub(r"\W", "_", definition["name"])
                case.folder.mkdir(parents=True)
                (case.folder / "definition.json").write_text(json.dumps(definition))
                (case.folder / "workload.jsonl").write_text(json.dumps(workload) + "\n")
                result.append(case)
    return result


def answer(case: Case, kind: str) -> str:
    """A module whose `run` answers the case."""
    code = case.definition["reference"] + "\n\nimport torch\n\nreference_run = run\n"
    if kind == "same":
        return code
    if kind == "zeros":
        call = "out = reference_run(*inputs)"
        return (
            code + f"\n\ndef run(*inputs):\n    {call}\n    if isinstance(out, torch.Tensor):\n"
            "        return torch.zeros_like(out)\n    return tuple(torch.zeros_like(x) for x in out)\n"
        )
    return code + NARROWER + "\n\ndef run(*inputs):\n    return reference_run(*[rounded(x) for x in inputs])\n"


def solution(case: Case, kind: str) -> dict:
    return {
        "name": kind,
        "definition": case.definition["name"],
        "author": "sol.py",
        "spec": {
            "languages": ["pytorch"],
            "target_hardware": ["LOCAL"],
            "entry_point": "answer.py::run",
            "dependencies": ["torch"],
            "destination_passing_style": False,
        },
        "sources": [{"path": "answer.py", "content": answer(case, kind)}],
    }


def judge(options, cases: list[Case], root: pathlib.Path) -> None:
    """Fills `ours` by one call of `kernelmill judge`."""
    tasks = root / "tasks"
    told = subprocess.run(
        [options.kernelmill, "task", "import", "sol", root / "problems", "--to", tasks, "--json"],
        capture_output=True,
        text=True,
    )
    if told.returncode:
        sys.exit(f"task import failed:\n{told.stderr}")
    document = json.loads(told.stdout)
    print(f"imported {document['imported']} of {len(cases)}, left out: {document['reasons']}", flush=True)
    there = {x["id"] for x in document["tasks"]}
    by_name, lines = {}, []
    for i, case in enumerate(cases):
        for kind in options.answers if case.task in there else ():
            file = root / f"{i}_{kind}.json"
            file.write_text(json.dumps(solution(case, kind)))
            by_name[file.name] = (case, kind)
            lines.append(json.dumps({"task": case.task, "file": str(file), "name": file.name}) + "\n")
    (root / "batch.ndjson").write_text("".join(lines))
    command = [options.kernelmill, "judge", root / "batch.ndjson", "--root", tasks, "--backend", options.backend]
    command += ["--python", options.python, "--torch-mode", options.mode]
    command += [] if options.timing else ["--no-timing"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in lines_until_interrupted(running):
        x = json.loads(line)
        name = pathlib.Path(x.get("name") or "").name
        if name not in by_name:
            print(f"of no workload: {line.strip()[:400]}", file=sys.stderr, flush=True)
            continue
        case, kind = by_name[name]
        case.ours[kind] = word_of(x)
        print(f"{case.name} {kind}: {case.ours[kind]}", file=sys.stderr, flush=True)
        if options.keep:
            with (options.keep / "verdicts.ndjson").open("a") as kept:
                kept.write(line)
    code = running.wait()
    if not any(x.ours for x in cases):
        sys.exit(f"kernelmill judge answered nothing and exited with {code}: {' '.join(map(str, command))}")


def lines_until_interrupted(running: subprocess.Popen):
    """Lines of its output. Ctrl-C ends it, and the table has what was judged by then."""
    try:
        yield from running.stdout
    except KeyboardInterrupt:
        running.terminate()


def word_of(verdict: dict) -> str:
    """ "pass", with the speedup where there is one; else the category."""
    category = verdict.get("category") or (verdict.get("error") or {}).get("category")
    if not verdict.get("correct") or verdict.get("outcome") == "rejected" and category not in COPIES:
        return str(category or verdict.get("outcome"))
    speedup = (verdict.get("timing") or {}).get("speedup", {}).get("estimate")
    return f"pass {speedup:.2f}" if speedup else "pass"


def harness(options, cases: list[Case], root: pathlib.Path) -> None:
    """Fills `theirs`, by the suite's driver in a process of its own for each answer."""
    source = options.harness / "src"
    driver = source / "sol_execbench" / "driver" / "templates" / "eval_driver.py"
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    if subprocess.run([options.harness_python or options.python, "-c", "import cupti"], capture_output=True).returncode:
        # Their clock is CUPTI's. Without it an answer comes as far as that: it is judged, and not timed.
        (root / "stub").mkdir()
        (root / "stub" / "cupti.py").write_text("cupti = None\n")
        environment["PYTHONPATH"] += os.pathsep + str(root / "stub")
    for i, case in enumerate(cases):
        for kind in options.answers:
            folder = root / "theirs" / f"{i}_{kind}"
            folder.mkdir(parents=True)
            shutil.copy(driver, folder / "eval_driver.py")
            definition = {k: v for k, v in case.definition.items() if k != "schema_version"}
            (folder / "definition.json").write_text(json.dumps(definition))
            (folder / "workload.jsonl").write_text(json.dumps(plain_workload(case.workload)) + "\n")
            one = solution(case, kind)
            (folder / "solution.json").write_text(json.dumps(one))
            (folder / "answer.py").write_text(one["sources"][0]["content"])
            command = [options.harness_python or options.python, "eval_driver.py"]
            try:
                told = subprocess.run(
                    command, cwd=folder, env=environment, capture_output=True, text=True, timeout=options.seconds
                )
                case.theirs[kind] = status_of(told)
            except subprocess.TimeoutExpired:
                case.theirs[kind] = "timeout"
            print(f"{case.name} {kind}: theirs {case.theirs[kind]}", file=sys.stderr, flush=True)


def plain_workload(x: dict) -> dict:
    """A workload of a newer form as the suite's own library has it."""
    result = {k: v for k, v in x.items() if k not in ("checks", "schema_version")}
    if checks := x.get("checks"):
        keys = ("max_atol", "max_rtol", "required_matched_ratio", "max_error_cap", "allow_negative_inf")
        result["tolerance"] = {k: checks[0][k] for k in keys if checks[0].get(k) is not None}
    return result


def status_of(told: subprocess.CompletedProcess) -> str:
    for line in told.stdout.splitlines():
        evaluation = json.loads(line).get("evaluation") or {}
        if evaluation.get("status") == "PASSED":
            speedup = (evaluation.get("performance") or {}).get("speedup_factor")
            return f"pass {speedup:.2f}" if speedup else "pass"
        # Without a GPU the driver comes as far as its clock: all outputs were right.
        return "pass" if "Timing failed" in (evaluation.get("log") or "") else str(evaluation.get("status")).lower()
    return "failed: " + (told.stderr.strip().splitlines() or ["nothing"])[-1][:60]


def table(cases: list[Case], with_theirs: bool) -> int:
    heads = ["workload", "types", "MiB", *ANSWERS] + ([f"their {x}" for x in ANSWERS] if with_theirs else [])
    rows = [
        [x.name, x.types, f"{x.size / 2**20:.1f}", *[x.ours.get(k, "-") for k in ANSWERS]]
        + ([x.theirs.get(k, "-") for k in ANSWERS] if with_theirs else [])
        for x in cases
    ]
    widths = [max(len(r[i]) for r in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    for kind in ANSWERS:
        print(f"{kind}: " + counted(x.ours.get(kind, "-") for x in cases))
        if with_theirs:
            print(f"{kind}, theirs: " + counted(x.theirs.get(kind, "-") for x in cases))
    wrong = [x.name for x in cases if not x.ours.get("same", "-").startswith(("pass", "-"))]
    wrong += [x.name + " (zeros)" for x in cases if x.ours.get("zeros", "-").startswith("pass")]
    if with_theirs:
        for kind in ANSWERS:
            differ = [x.name for x in cases if passed(x.ours, kind) is not passed(x.theirs, kind)]
            print(f"{kind}: {len(differ)} differ" + (": " + ", ".join(differ) if differ else ""))
            wrong += differ if kind != "narrow" else []
    print("not as it should be: " + (", ".join(wrong) or "none"))
    return 1 if wrong else 0


def passed(words: dict[str, str], kind: str) -> bool:
    return words.get(kind, "-").startswith("pass")


def counted(words) -> str:
    return ", ".join(f"{k} {n}" for k, n in collections.Counter(x.split()[0] for x in words).most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=pathlib.Path, nargs="+")
    parser.add_argument("--kernelmill", default="build/bin/kernelmill")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--backend", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--mode", default="honest", help="of `kernelmill judge --torch-mode`")
    parser.add_argument("--answers", type=lambda x: x.split(","), default=ANSWERS, help="some of same,zeros,narrow")
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--definition", default="*")
    parser.add_argument("--types", default="")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--most-mib", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--harness", type=pathlib.Path, help="a checkout of SOL-ExecBench")
    parser.add_argument("--harness-python", help="an interpreter that has torch and pydantic")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the verdicts")
    options = parser.parse_args()
    options.kernelmill = str(pathlib.Path(options.kernelmill).absolute())
    options.harness = options.harness and options.harness.absolute()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        cases = chosen(options, root / "problems")
        judge(options, cases, root)
        if options.harness:
            harness(options, cases, root)
        return table(cases, bool(options.harness))


if __name__ == "__main__":
    sys.exit(main())
