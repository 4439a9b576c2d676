#!/usr/bin/env python3
"""Prints for each suite how many of its problems become tasks, and why others do not.

    tests/bench/suites.py compute-eval compute-eval/data/releases kernelbench ~/KernelBench

Words come in pairs: a suite as `kernelmill task import` names it, and what its owner has. Each is imported
into a folder that is removed afterwards. `suites.py --all FOLDER` looks for the checkouts below one folder by
the names of PLACES. Exit code 1: an import failed.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

# A suite, and where its problems lie in a checkout of its usual name.
PLACES = [
    ("compute-eval", "compute-eval/data/releases"),
    ("kernelbench", "KernelBench"),
    ("sol", "SOL-ExecBench"),
    ("sol", "SOL-ExecBench-ROCm/problems"),
    ("flashinfer", "flashinfer-bench/examples/ffi/Example-FlashInfer-Trace"),
    ("multikernelbench", "MultiKernelBench"),
    ("robust-kbench", "robust-kbench"),
    ("gpu-mode", "reference-kernels"),
]


def import_suite(program: str, suite: str, path: str) -> dict:
    """The document of `task import --json`, or {"failed": its words}."""
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "task", "import", suite, path, "--to", folder, "--json"]
        done = subprocess.run(words, text=True, capture_output=True)
    if done.returncode:
        try:
            return {"failed": json.loads(done.stderr)["error"]["message"]}
        except (json.JSONDecodeError, KeyError):
            return {"failed": done.stderr.strip()[-300:]}
    return json.loads(done.stdout)


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["--all"] and len(words) == 2:
        root = pathlib.Path(words[1])
        words = [x for suite, place in PLACES if (root / place).exists() for x in (suite, str(root / place))]
    if not words or len(words) % 2:
        print(__doc__, file=sys.stderr)
        return 2
    program = str(pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR", "build/bin")) / "kernelmill")
    failed = 0
    print(f"{'suite':20}{'tasks':>8}{'left out':>10}  why, and from where")
    for suite, path in zip(words[::2], words[1::2], strict=True):
        x = import_suite(program, suite, path)
        if "failed" in x:
            failed += 1
            print(f"{suite:20}{'-':>8}{'-':>10}  failed: {x['failed']}: {path}")
            continue
        tasks = x["imported"] + x["unchanged"] + x["replaced"]
        why = ", ".join(f"{reason} ({n})" for reason, n in sorted(x["reasons"].items(), key=lambda x: -x[1]))
        print(f"{suite:20}{tasks:8}{x['left_out']:10}  {why or '-'}: {path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
