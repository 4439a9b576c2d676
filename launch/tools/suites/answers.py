"""Answers that are made of a problem's own text, right ones and wrong ones, and what they are judged with."""

import json
import os
import pathlib
import subprocess
import sys

RIGHT = "\n\nclass ModelNew(Model):\n    pass\n"
CHANGED = """

class ModelNew(Model):
    def forward(self, *inputs):
        out = super().forward(*inputs)
        several = isinstance(out, (tuple, list))
        changed = [CHANGE for x in (out if several else [out])]
        return changed if several else changed[0]
"""
ANSWERS = {  # by name: the text behind the problem's
    "itself": RIGHT,
    "zeros": CHANGED.replace("CHANGE", "torch.zeros_like(x)"),
    "scaled": CHANGED.replace("CHANGE", "x * 1.05 if x.is_floating_point() else x + 1"),
    "rounded": CHANGED.replace("CHANGE", "x.bfloat16().to(x.dtype) if x.is_floating_point() else x"),
    "fails": CHANGED.replace("CHANGE", "x.no_such_method()"),
}


def tasks_of(kernelmill, root):
    """Ids of imported tasks, sorted."""
    done = subprocess.run([kernelmill, "task", "list", "--root", root, "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return sorted(x["id"] for x in json.loads(done.stdout)["tasks"])


def problem_of(root, task):
    return (pathlib.Path(root) / task / "problem.py").read_text(encoding="utf-8")


def judge(arguments):
    """Lines of a `kernelmill judge` as documents; what it says goes to stderr."""
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))} ended with {done.returncode}")
    return [json.loads(x) for x in done.stdout.splitlines()]


def default_kernelmill():
    own = pathlib.Path(__file__).resolve().parents[3] / "build/bin/kernelmill"
    return os.environ.get("KERNELMILL_BIN_DIR", "") and os.environ["KERNELMILL_BIN_DIR"] + "/kernelmill" or str(own)
