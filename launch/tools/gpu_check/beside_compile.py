"""KernelBench's problems beside torch.compile: the model as it is and the model that torch.compile made, both as
answers, judged unattended. The second is about 1x where the first is what the baseline's estimate of `eager` says.

  PYTHONPATH=launch/tools python3 -m gpu_check.beside_compile --problems problems.jsonl --python PATH --out DIR

Goes on where it was ended: DIR keeps the verdicts, one a line. Prints a table last, and how many turns were left to the
machine."""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parents[2] / "build" / "bin" / "kernelmill"
ANSWERS = {
    "eager": "\n\nclass ModelNew(Model):\n    pass\n",
    "compile": """

class ModelNew(torch.nn.Module):
    def __init__(self, *given):
        super().__init__()
        self.model = Model(*given)
        self.compiled = [torch.compile(self.model, dynamic=False)]

    def forward(self, *inputs):
        return self.compiled[0](*inputs)
""",
}
ROUND = 4  # problems a call of `kernelmill judge`: what is lost where the time ends


def read_options(arguments):
    parser = argparse.ArgumentParser(prog="beside_compile", description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--problems", required=True, metavar="FILE", help="problems.jsonl of KernelBench, or of this form")
    add("--level", type=int, default=1)
    add("--first", type=int, default=1, help="problem_id to begin with")
    add("--count", type=int, default=100, help="how many problems")
    add("--baseline", default="compile", choices=("eager", "compile", "compile_max_autotune"))
    add("--backend", default="auto", choices=("auto", "cpu", "cuda"))
    add("--python", default=sys.executable, help="interpreter with torch; default: this one")
    add("--program", default=str(PROGRAM), help="kernelmill; default: that of this checkout")
    add("--out", default=os.environ.get("OUT", "/tmp/beside_compile"), help="folder; default: $OUT")
    add("--seconds", type=float, default=math.inf, help="no further problems are begun after this time")
    return parser.parse_args(arguments)


def chosen_problems(options):
    with open(options.problems, encoding="utf-8") as file:
        found = [json.loads(line) for line in file if line.strip()]
    last = options.first + options.count
    return [x for x in found if x["level"] == options.level and options.first <= x["problem_id"] < last]


def lay_out(options, problems):
    """Imports the problems as tasks and writes their answers."""
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "problems.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(x) + "\n" for x in problems)
    command = [
        options.program,
        "task",
        "import",
        "kernelbench",
        str(out / "problems.jsonl"),
        "--to",
        str(out / "tasks"),
    ]
    subprocess.run([*command, "--force"], check=True)
    for x in problems:
        for name, more in ANSWERS.items():
            (out / file_of(x, name)).write_text(x["code"] + more, encoding="utf-8")


def file_of(problem, name):
    return f"{problem['level']}_{problem['problem_id']}_{name}.py"


def task_of(problem):
    return f"kernelbench/level{problem['level']}/{problem['name']}"


def judge(options, problems):
    """Returns the verdicts as lines of JSON."""
    out = pathlib.Path(options.out)
    lines = [
        {"name": f"{x['problem_id']} {name}", "task": task_of(x), "file": file_of(x, name)}
        for x in problems
        for name in ANSWERS
    ]
    (out / "batch.ndjson").write_text("".join(json.dumps(x) + "\n" for x in lines))
    command = [options.program, "judge", str(out / "batch.ndjson"), "--root", str(out / "tasks")]
    command += ["--python", options.python, "--backend", options.backend]
    if options.baseline != "eager":
        command += ["--baseline", options.baseline]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]


def read_done(path):
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        return {x["name"]: x for x in map(json.loads, file)}


def row_of(name, verdict):
    timing = verdict.get("timing") or {}
    speedup = (timing.get("speedup") or {}).get("estimate")
    return {
        "name": name,
        "outcome": verdict["outcome"],
        "category": verdict.get("category") or "",
        "baseline": timing.get("baseline"),
        "note": timing.get("baseline_note") or "",
        "speedup": speedup,
        "eager": timing.get("eager_speedup") or (speedup if timing.get("baseline") == "eager" else None),
        "ms": timing.get("candidate_ms"),
        "seconds": verdict.get("slot_s"),
        "left": verdict["outcome"] == "infrastructure" or timing.get("not_timed") == "machine",
    }


def mean(values):
    values = [x for x in values if x]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def print_table(rows):
    print(f"{'answer':16} {'against paid':>12} {'against eager':>13} {'ms':>10} {'s':>6}  baseline, outcome")
    for x in rows:
        numbers = [f"{x[key]:.3f}" if x[key] else "-" for key in ("speedup", "eager")]
        ms = f"{x['ms']:.4f}" if x["ms"] else "-"
        words = " ".join(y for y in (str(x["baseline"]), x["outcome"], x["category"], x["note"][:70]) if y)
        print(f"{x['name']:16} {numbers[0]:>12} {numbers[1]:>13} {ms:>10} {x['seconds'] or 0:6.1f}  {words}")
    print()
    for name in ANSWERS:
        own = [x for x in rows if x["name"].endswith(" " + name)]
        timed = [x["speedup"] for x in own if x["speedup"]]
        near = sum(0.9 <= x <= 1.1 for x in timed)
        accepted = sum(x["outcome"] == "accepted" for x in own)
        print(f"{name:8} {len(own)} judged, {accepted} accepted, {len(timed)} timed; geometric means:", end=" ")
        print(f"against the paid baseline {mean(timed):.3f} ({near} within 10 % of 1),", end=" ")
        print(f"against eager {mean(x['eager'] for x in own):.3f}")
    refused = len({x["name"].split()[0] for x in rows if x["baseline"] == "eager"})
    print(f"problems that torch.compile refused: {refused}")
    print(f"turns left to the machine: {sum(x['left'] for x in rows)}")


def main(arguments=None):
    options = read_options(arguments)
    started = time.monotonic()
    problems = chosen_problems(options)
    lay_out(options, problems)
    path = pathlib.Path(options.out) / "verdicts.ndjson"
    done = read_done(path)
    left = [x for x in problems if any(f"{x['problem_id']} {name}" not in done for name in ANSWERS)]
    with open(path, "a", encoding="utf-8") as file:
        while left and time.monotonic() - started < options.seconds:
            for verdict in judge(options, left[:ROUND]):
                file.write(json.dumps(verdict) + "\n")
            file.flush()
            left = left[ROUND:]
    done = read_done(path)
    names = [f"{x['problem_id']} {name}" for x in problems for name in ANSWERS]
    print_table([row_of(x, done[x]) for x in names if x in done])
    missing = [x for x in names if x not in done]
    print(f"not judged yet: {len(missing)}")
    return 0 if not missing else 1


if __name__ == "__main__":
    sys.exit(main())
