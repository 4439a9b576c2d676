"""Runs the same answers through KernelBench's own evaluator and through `kernelmill judge`.

Given a KernelBench checkout by its user, every answer of kernelbench_candidates goes through both, on one
machine, and what came out is compared: verdicts, seconds for each answer, answers per hour, speedups. Each
result is written to --state as soon as there is one: a call that is cut off is continued by the next.

    python kernelbench_side_by_side.py --kernelbench CHECKOUT --problems problems.jsonl \\
        --kernelmill build/bin/kernelmill --state side_by_side.json [--limit-seconds 500]

The benchmark is called as its batch script calls it: `eval_kernel_against_ref`, 5 correctness trials, 100
timed runs, CUDA events, its check for excessive speedup, a fresh process and an empty build folder for each
answer. What its package imports and an evaluation never uses may be missing: see side_by_side/worker.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

from side_by_side.answers import Clock, Row, State, estimate_seconds, load_candidates, load_problems
from side_by_side.figures import print_summary, summary
from side_by_side.ours import Ours, run_passes, run_verdicts
from side_by_side.theirs import run_theirs

HERE = pathlib.Path(__file__).resolve().parent


def describe_machine(options: argparse.Namespace, state: State) -> None:
    """Notes once what the figures depend on."""
    probe = (
        "import json, torch\n"
        "try:\n import triton; t = triton.__version__\nexcept ImportError: t = None\n"
        "print(json.dumps({'torch': torch.__version__, 'triton': t, 'gpu': torch.cuda.get_device_name(0)"
        " if torch.cuda.is_available() else None}))"
    )
    done = subprocess.run([options.python, "-c", probe], capture_output=True, text=True, check=True)
    facts: dict = json.loads(done.stdout) | {"cores": os.cpu_count()}
    if options.kernelbench:
        # A copy without .git may carry its commit in a file; git would answer for a repository around it.
        note = options.kernelbench / "COMMIT"
        told = (
            note.read_text()
            if note.exists()
            else subprocess.run(
                ["git", "--git-dir", options.kernelbench / ".git", "rev-parse", "--short", "HEAD"],
                capture_output=True,
                text=True,
            ).stdout
        )
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
        print(
            f"{total:7.0f} {estimate_seconds(row):5.0f} s  {row['input_mb']:6} MB  {row['kind']:10} "
            f"{row['language']:7} {row['file']:52} {known}"
        )


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    parser.add_argument(
        "--match", action="append", help="takes answers whose file is like this glob, as '*19_relu*'; may be repeated"
    )
    parser.add_argument("--max-input-gb", type=float, default=math.inf, help="leaves out larger problems")
    parser.add_argument(
        "--timed",
        type=int,
        metavar="N",
        help="the benchmark runs the first N alone, the others at once for their verdicts",
    )
    parser.add_argument("--workers", type=int, default=8, help="how many at once after --timed. Default: 8")
    parser.add_argument(
        "--gpu-gb",
        type=float,
        default=110,
        metavar="G",
        help="memory of the GPU that those at once may take, as guessed. Default: 110",
    )
    parser.add_argument("--timeout", type=float, default=300, help="the benchmark's, in s. Default: 300")
    parser.add_argument(
        "--cut-hangs",
        type=float,
        default=45,
        metavar="S",
        help="ends answers that are known to hang after S s. Default: 45",
    )
    parser.add_argument(
        "--at-least", type=int, default=64, metavar="N", help="answers of a pass of ours, by copies. Default: 64"
    )
    parser.add_argument("--no-passes", action="store_true", help="verdicts of ours only, no throughput")
    parser.add_argument("--backend", default="cuda", help="where kernelmill runs answers. Default: cuda")
    parser.add_argument(
        "--judge-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="one more argument of kernelmill judge, as --judge-arg=--torch-mode",
    )
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
