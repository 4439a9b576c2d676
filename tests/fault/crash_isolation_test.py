#!/usr/bin/env python3
"""Candidates that crash, hang and damage themselves between good ones: no good one is mis-scored.

`kernelmill judge` gets good and bad kernels in turns, on all slots at once, each source another one, so that nothing
comes from a cache. Each good one must be correct, each bad one must not be, and none may be called a fault of the
machine. $KERNELMILL_CANDIDATES says how many of each (15 without it). Exit code 77: it cannot run here.
"""

import collections
import json
import os
import subprocess
import sys

from real_processes import SKIP, binary, number, report, scratch_folder

GOOD = (
    "for (int i = 0; i < rows; ++i) { float s = 0; for (int j = 0; j < cols; ++j) s += x[long(i) * cols + j]; "
    "y[i] = s; }"
)
BAD = {
    "null": "*(volatile int*)nullptr = 1;",
    "wild_read": "y[0] = x[1L << 40];",
    "writes_input": "const_cast<float*>(x)[0] = 1;",
    "abort": "__builtin_trap();",
    "stack": "volatile char big[1 << 16]; big[rows] = 1; solve(x, y, rows, cols); big[0] = 2;",
    "division": "volatile int zero = 0; y[0] = float(rows / zero);",
    "exits": "_exit(0);",
    "kills_all": "kill(-1, 9);",
    "kills_itself": "kill(getpid(), 9);",
    "throws": "throw 1;",
    "beyond": "for (long i = 0; i < 1L << 30; ++i) y[i] = 0;",
}
HANG = "for (volatile int i = 0;; i = 0) {}"


def write_batch(folder, count, hangs):
    lines = []
    for i in range(count):
        kinds = list(BAD.items()) + ([("hangs", HANG)] if i < hangs else [])
        name, body = kinds[-1] if i < hangs else kinds[i % len(kinds)]
        for label, text in ((f"good{i}", GOOD), (f"{name}{i}", body)):
            (folder / f"{label}.cpp").write_text(
                f"#include <csignal>\n#include <unistd.h>\n// {i}\n"
                'extern "C" void solve(const float* x, float* y, int rows, int cols) '
                f"{{ {text} }}\n"
            )
            lines.append(json.dumps({"task": "native/row_sum", "file": f"{label}.cpp", "name": label}))
    (folder / "batch.ndjson").write_text("\n".join(lines) + "\n")


def main():
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    count = number("KERNELMILL_CANDIDATES", 15)
    with scratch_folder("crashes") as folder:
        write_batch(folder, count, max(1, count // 100))
        done = subprocess.run(
            [binary, "judge", "batch.ndjson", "--backend", "cpu", "--no-timing"],
            cwd=folder,
            env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60 + 30 * count,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        verdicts = {x["name"]: x for x in map(json.loads, done.stdout.splitlines())}
        assert len(verdicts) == 2 * count, f"{len(verdicts)} verdicts of {2 * count}"
        kinds: collections.Counter = collections.Counter()
        mis_scored = []
        for name, x in verdicts.items():
            good = name.startswith("good")
            kinds["good" if good else x["category"]] += 1
            if x["correct"] != good or x["outcome"] == "infrastructure" or (not good and (x["reward"] or 0) > 0.0):
                mis_scored.append(f"{name}: {x['outcome']} {x['category']} {x.get('fault')}")
        report(good=count, bad=count, mis_scored=len(mis_scored), kinds=dict(kinds))
        assert not mis_scored, "\n".join(mis_scored)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
