#!/usr/bin/python3
"""Judges answers of each kind to the shipped tasks of the contract `program`, and prints a table.

    tests/integration/program/smoke.py build/bin/kernelmill cpu|cuda

Exit code 0: each came to what it should. On a machine without a GPU `cuda` is refused by kernelmill.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TASKS = HERE.parents[2] / "configs" / "tasks"

LEAVE = "#include <unistd.h>\n__attribute__((constructor)) static void leave() { _exit(0); }\n"
LIE = '#include <cstdio>\n__attribute__((destructor)) static void lie() { puts("COMPUTE_EVAL_TIME_MS: 0.001"); }\n'
SOLUTIONS = {
    "cuda": ("program/window_sum", "solution.cu", "sliding_sum.cu"),
    "cpu": ("program/close_pairs", "solution.cpp", "grid_pairs.cpp"),
}


def answers(backend):
    """Name, text, and the categories that it may come to."""
    task, answer_file, good = SOLUTIONS[backend]
    baseline = TASKS / task / "baseline"
    own = (baseline / answer_file).read_text()
    others = "".join(f"// file: {x.name}\n{x.read_text()}" for x in sorted(baseline.iterdir()) if x.name != answer_file)

    def answer(text):
        return f"// file: {answer_file}\n{text}{others}"

    wrong = own.replace("sum += values[i + k]", "sum += values[i]").replace("++pairs", "pairs += 2")
    return [
        ("the baseline", answer(own), {"unchanged"}),
        ("a faster answer", (HERE / "answers" / good).read_text(), {"success"}),
        ("a wrong answer", answer(wrong), {"wrong_result"}),
        ("leaves before the tests", answer(LEAVE + own), {"exited"}),
        ("prints a time", answer(LIE + own), {"slower", "success", "not_timed"}),
        ("does not compile", answer("int broken( {\n"), {"compile_error"}),
    ]


def judged(program, backend, text):
    task, answer_file, _ = SOLUTIONS[backend]
    with tempfile.NamedTemporaryFile("w", suffix=pathlib.Path(answer_file).suffix) as file:
        file.write(text)
        file.flush()
        command = [program, "eval", file.name, "--task", task, "--backend", backend, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"category": f"exit code {done.returncode}: {done.stderr.strip()[:300]}"}


def main(program, backend):
    rows = []
    for name, text, wanted in answers(backend):
        verdict = judged(program, backend, text)
        timing = verdict.get("timing") or {}
        speedup = timing.get("speedup") or {}
        shown = f"{speedup['estimate']:.2f}x from {speedup['low']:.2f}x" if timing.get("measured") else "-"
        category = str(verdict.get("category"))
        rows.append((category in wanted, name, category, shown, timing.get("note") or ""))
    command = [program, "task", "check", SOLUTIONS[backend][0]]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    print(check.stdout, check.stderr)
    rows.append((check.returncode == 0, "task check", f"exit code {check.returncode}", "-", ""))
    for ok, name, category, speedup, note in rows:
        print(f"{'ok' if ok else 'BAD':4}{name:26}{category:18}{speedup:24}{note}")
    return 0 if all(row[0] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
