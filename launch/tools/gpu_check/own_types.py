#!/usr/bin/env python3
"""Problems of other types than float32, in both modes: honest answers pass, those in a narrower type do not.

    own_types.py KERNELMILL [--backend cuda] [--python PATH]

Prints a table last; exit code 1 where a verdict is not what it should be. Types that this torch lacks are left out."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HEAD = """import torch


class Model(torch.nn.Module):
    def forward(self, {0}):
        return reference({0})


"""
NORM = """def reference(x, w):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * w.float()).to(x.dtype)
"""
QUANTIZE = """def reference(x):
    s = x.float().abs().amax(-1, keepdim=True) / 448.0
    return (x.float() / s).to(torch.float8_e4m3fn), s
"""
PRODUCT = """def reference(a, b, s):
    return torch._scaled_mm(a, b.t(), scale_a=s, scale_b=s, out_dtype=torch.bfloat16)
"""
INSIDE = """def reference(x, w):
    return torch.relu(x.to(torch.bfloat16) @ w.to(torch.bfloat16)).float().sum(-1)
"""

# By name: arguments, reference, inputs, answers (body of `run`, right in honest, right in suite).
PROBLEMS = {
    "norm_bf16": (
        "x, w",
        NORM,
        "[torch.randn(rows, 1024, dtype=torch.bfloat16), torch.randn(1024, dtype=torch.bfloat16)]",
        {
            "same": (
                "y = x.float(); y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6); return (y * w).bfloat16()",
                1,
                1,
            ),
            "fp8 inside": (
                "y = x.float(); r = torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6); "
                "return (x.to(torch.float8_e4m3fn).float() * r * w).bfloat16()",
                0,
                0,
            ),
            "zeros": ("return torch.zeros_like(x)", 0, 0),
        },
    ),
    "quantize_fp8": (
        "x",
        QUANTIZE,
        "[torch.randn(rows, 1024, dtype=torch.bfloat16)]",
        {
            "reciprocal": (
                "m = x.float().abs().amax(-1, keepdim=True); "
                "return (x.float() * (448.0 / m)).to(torch.float8_e4m3fn), m / 448.0",
                1,
                1,
            ),
            "through e5m2": (
                "m = x.float().abs().amax(-1, keepdim=True); return (x.float() * (448.0 / m))"
                ".to(torch.float8_e5m2).float().to(torch.float8_e4m3fn), m / 448.0",
                0,
                0,
            ),
        },
    ),
    "product_fp8": (
        "a, b, s",
        PRODUCT,
        "[torch.randn(rows, 512).to(torch.float8_e4m3fn), torch.randn(256, 512).to(torch.float8_e4m3fn), "
        "torch.ones(())]",
        {
            "in float32": ("return ((a.float() @ b.float().t()) * s * s).bfloat16()", 1, 1),
            "fp8 behind": ("return (a.float() @ b.float().t()).to(torch.float8_e4m3fn).bfloat16()", 0, 0),
        },
    ),
    "inside_bf16": (
        "x, w",
        INSIDE,
        "[torch.randn(rows, 512), torch.randn(512, 256)]",
        {
            "fused": ("return torch.relu(x.bfloat16().float() @ w.bfloat16().float()).sum(-1)", 1, 1),
            "columns less": ("return torch.relu(x.bfloat16() @ w.bfloat16()).float()[:, 16:].sum(-1)", 0, 0),
        },
    ),
}


def write(folder: pathlib.Path, name: str) -> None:
    arguments, reference, inputs, _ = PROBLEMS[name]
    place = folder / "types" / name
    place.mkdir(parents=True)
    document = {
        "schema_version": 1,
        "id": f"types/{name}",
        "title": name,
        "verb": "optimize",
        "operator_family": "fusion",
        "contract": "torch",
        "precision": "own",
        "backends": ["cpu", "cuda"],
        "entry": {"function": "run"},
        "tolerance": {"absolute": 1e-2, "relative": 1e-2, "matched": 0.99},
        "variants": [{"name": "more", "set": {"rows": 384}, "timed": True}],
    }
    (place / "task.json").write_text(json.dumps(document), encoding="utf-8")
    (place / "prompt.md").write_text("A check.\n", encoding="utf-8")
    text = HEAD.format(arguments).replace("\n\n\nclass", f"\n\n{reference}\n\nclass", 1)
    text += f"rows = 256\n\n\ndef get_inputs():\n    return {inputs}\n\n\ndef get_init_inputs():\n    return []\n"
    (place / "problem.py").write_text(text, encoding="utf-8")


def judged(options, folder: pathlib.Path, turns: list, mode: str):
    """(name, mode, whether it was found right, whether it is, speedup) of every turn."""
    batch = folder / "batch.ndjson"
    lines = [json.dumps({"name": name, "task": task, "file": str(file)}) + "\n" for name, task, file, _ in turns]
    batch.write_text("".join(lines), encoding="utf-8")
    command = [options.kernelmill, "judge", batch, "--root", folder, "--backend", options.backend]
    command += ["--python", options.python, "--torch-mode", mode]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False, timeout=580)
    found = {x["name"]: x for x in map(json.loads, done.stdout.splitlines()) if "name" in x}
    for name, _, _, right in turns:
        verdict = found.get(name) or {}
        speedup = (verdict.get("timing") or {}).get("speedup") or {}
        yield name, mode, verdict.get("correct"), bool(right[mode]), speedup.get("estimate")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernelmill")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--python", default="python3")
    options = parser.parse_args()
    has_fp8 = "import torch, sys; sys.exit(not hasattr(torch, 'float8_e4m3fn'))"
    fp8 = subprocess.run([options.python, "-c", has_fp8], check=False).returncode == 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        turns = []
        for name, (arguments, _, _, answers) in PROBLEMS.items():
            if "fp8" in name and not fp8:
                continue
            write(folder, name)
            for what, (body, honest, suite) in answers.items():
                if "float8" in body and not fp8:
                    continue
                answer = folder / f"{len(turns)}.py"
                answer.write_text(f"import torch\n\n\ndef run({arguments}):\n    {body}\n", encoding="utf-8")
                turns.append((f"{name} {what}", f"types/{name}", answer, {"honest": honest, "suite": suite}))
        rows = [row for mode in ("honest", "suite") for row in judged(options, folder, turns, mode)]
    wrong = sum(found is not wanted for _, _, found, wanted, _ in rows)
    for row in rows:
        print("{:28} {:8} right {!s:6} wanted {!s:6} speedup {}".format(*row))
    print(f"{len(rows)} verdicts, {wrong} not as wanted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
