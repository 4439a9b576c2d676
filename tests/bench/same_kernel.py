#!/usr/bin/env python3
"""Evaluates one kernel again and again, each time in processes of its own, and prints how many of the
speedups' intervals hold the median of all estimates. An interval of 95 % that knows what differs
between evaluations holds it in 19 of 20.

    tests/bench/same_kernel.py [--task native/gelu] [--kernel FILE] [--evaluations 20]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def evaluate(program, task, kernel):
    """The verdict's `timing`; None where the kernel was not timed."""
    done = subprocess.run(
        [program, "eval", "--task", task, kernel, "--backend", "cpu", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        verdict = json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"same_kernel: eval exited with {done.returncode}: {done.stderr.strip()}")
    timing = verdict["timing"]
    return timing if timing["measured"] else None


def spread(values):
    return f"{statistics.median(values):.5g} in the median, {min(values):.5g} to {max(values):.5g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="native/gelu")
    parser.add_argument("--kernel", default=ROOT / "configs/policies/quickstart/gelu/fast.cpp")
    parser.add_argument("--evaluations", type=int, default=20)
    parser.add_argument(
        "--program", default=os.environ.get("KERNELMILL_BIN_DIR", ROOT / "build/bin") / pathlib.Path("kernelmill")
    )
    asked = parser.parse_args()
    timed = []
    for number in range(1, asked.evaluations + 1):
        x = evaluate(str(asked.program), asked.task, str(asked.kernel))
        if x is None:
            print(f"{number:3} not timed", flush=True)
            continue
        timed.append(x)
        s = x["speedup"]
        print(
            f"{number:3} {s['estimate']:.4f} [{s['low']:.4f}, {s['high']:.4f}]  {x['candidate_ms']:.5f} ms"
            f" against {x['reference_ms']:.5f} ms, an empty call {x['overhead_ms'] * 1e3:.2f} us, "
            f"{x['samples']} calls; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    if not timed:
        sys.exit("same_kernel: no evaluation was timed")
    middle = statistics.median(x["speedup"]["estimate"] for x in timed)
    hold = sum(x["speedup"]["low"] <= middle <= x["speedup"]["high"] for x in timed)
    halves = [(x["speedup"]["high"] - x["speedup"]["low"]) / 2 / x["speedup"]["estimate"] for x in timed]
    print(
        f"{hold} of {len(timed)} intervals hold the common median {middle:.4f}; "
        f"{asked.evaluations - len(timed)} not timed"
    )
    print(f"estimate {spread([x['speedup']['estimate'] for x in timed])}")
    print(f"half of an interval, relative: {spread(halves)}")
    print(f"candidate, ms: {spread([x['candidate_ms'] for x in timed])}")
    print(f"baseline, ms: {spread([x['reference_ms'] for x in timed])}")


if __name__ == "__main__":
    main()
