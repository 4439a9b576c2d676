"""Checks the answers of kernelbench_candidates against their problems without a GPU, at small sizes.

Triton kernels run in Triton's interpreter and plain PyTorch answers on the CPU; of inline CUDA only the
sources are compiled, with --nvcc. A right answer must agree with its problem, a wrong one must not.

    python kernelbench_check_candidates.py --problems problems.jsonl [--nvcc all|stub] [PATTERN...]

With --nvcc stub device and host code are compiled against a few declarations in place of torch's headers,
which takes a second or two; with --nvcc all they are built and loaded as they are, a minute for each.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "kernelbench_candidates"

# Constants of the problems that make them small; odd numbers wherever an answer allows them.
SMALL: dict[tuple[int, int], dict] = {
    (1, 1): {"N": 77},
    (1, 7): {"M": 150, "N": 70, "K": 64},
    (1, 9): {"M": 150, "N": 32},
    (1, 10): {"N": 3, "M": 37, "K": 65, "L": 70},
    (1, 12): {"M": 2070, "N": 9},
    (1, 14): {"N": 200},
    (1, 15): {"M": 200},
    (1, 16): {"M": 31, "K": 65, "N": 33},
    (1, 17): {"M": 130, "K": 2048, "N": 140},
    (1, 19): {"batch_size": 7, "dim": 3001},
    (1, 40): {"batch_size": 3, "features": 5, "dim1": 61, "dim2": 63},
    (1, 42): {"batch_size": 2, "channels": 3, "height": 19, "width": 530},
    (1, 44): {"batch_size": 2, "in_channels": 3, "input_length": 1100},
    (1, 47): {"batch_size": 3, "dim1": 50, "dim2": 301},
    (1, 83): {"batch_size": 2, "in_channels": 3, "height": 17, "width": 530},
    (1, 88): {"batch_size": 13, "dim": 333},
    (1, 89): {"batch_size": 5, "input_shape": (5001,)},
    (1, 95): {"batch_size": 1100, "num_classes": 77, "input_shape": (77,)},
    (1, 98): {"batch_size": 33, "input_shape": (2100,)},
    (2, 9): {"batch_size": 9, "in_features": 100, "out_features": 130, "subtract_value": 0.1},
    (2, 29): {"batch_size": 9, "in_features": 100, "out_features": 130},
    (2, 40): {"batch_size": 9, "in_features": 100, "out_features": 130},
    (2, 53): {"batch_size": 9, "in_features": 100, "out_features": 130},
    (2, 62): {"batch_size": 5, "input_size": 70, "hidden_size": 640, "num_groups": 40},
    (2, 69): {"batch_size": 2, "in_channels": 3, "out_channels": 5, "height": 15, "width": 17},
    (2, 70): {"batch_size": 9, "input_size": 100, "hidden_size": 130},
    (2, 76): {"batch_size": 9, "in_features": 100, "out_features": 1100, "bias_shape": (1100,)},
    (2, 80): {"batch_size": 9, "in_features": 100, "out_features": 130},
    (2, 86): {"batch_size": 9, "input_size": 100, "output_size": 130},
    (2, 99): {"batch_size": 9, "in_features": 100, "out_features": 130},
    (3, 4): {"batch_size": 5},
    (3, 8): {"batch_size": 1, "out_channels": 4},
    (3, 43): {"batch_size": 2, "seq_len": 33, "max_seqlen": 40, "n_embd": 24, "n_head": 4},
    (3, 50): {"batch_size": 2, "max_seqlen": 40, "n_embd": 24, "n_head": 4},
}

STUB = r"""
#pragma once
#include <cuda_runtime.h>
#include <cstdint>
#include <initializer_list>
typedef int ScalarKind;
namespace at {
struct Options { Options dtype(int) const; };
struct Tensor {
    bool is_cuda() const; bool is_contiguous() const; long dim() const; long numel() const;
    long size(long) const; Tensor contiguous() const; Tensor t() const; Options options() const;
    ScalarKind scalar_type() const; template <class T> T* data_ptr() const;
};
Tensor matmul(const Tensor&, const Tensor&);
}
namespace c10 { namespace cuda { cudaStream_t getCurrentCUDAStream(); } }
namespace torch {
using at::Tensor;
constexpr int kFloat64 = 0;
Tensor empty_like(const Tensor&);
Tensor empty(std::initializer_list<long>, at::Options);
}
#define TORCH_CHECK(...) (void)(0 && sizeof(#__VA_ARGS__))
#define C10_CUDA_KERNEL_LAUNCH_CHECK()
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) { using scalar_t = float; __VA_ARGS__(); }
"""


def load_problems(path: pathlib.Path) -> dict[tuple[int, int], str]:
    """Returns the code of each problem by level and number."""
    rows = (json.loads(line) for line in path.read_text().splitlines() if line.strip())
    return {(x["level"], x["problem_id"]): x["code"] for x in rows}


def load_candidate(path: pathlib.Path, name: str) -> type:
    """Imports an answer from its file, as Triton wants it, and returns its ModelNew."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelNew


def mend_interpreter() -> None:
    """Lets loops of interpreted kernels have bounds that are tensors: NumPy 2.4 refuses int(array([3]))."""
    from triton.runtime import interpreter

    scope = getattr(interpreter, "_LangPatchScope", None)
    if scope is None or hasattr(scope, "mended"):
        return
    before = scope.set_attr

    def set_attr(self: object, target: object, name: str, value: object) -> None:
        before(self, target, name, (lambda x: int(x.handle.data.item())) if name == "__index__" else value)

    scope.set_attr, scope.mended = set_attr, True


def compare(code: str, path: pathlib.Path, sizes: dict) -> str:
    """Returns "agrees", "differs ..." or what was raised, of an answer at small sizes."""
    import torch

    mend_interpreter()
    problem: dict = {"__name__": "problem"}
    exec(code, problem)
    problem.update(sizes)
    try:
        new = load_candidate(path, "answer_" + path.stem)
        with torch.no_grad():
            models = []
            for make in (problem["Model"], new):
                torch.manual_seed(42)
                models.append(make(*problem["get_init_inputs"]()))
            torch.manual_seed(7)
            inputs = problem["get_inputs"]()
            wanted = models[0](*inputs)
            got = models[1](*inputs)
    except Exception as e:  # noqa: BLE001  an answer may raise anything
        return f"raises {type(e).__name__}: {str(e)[:90]}".replace("\n", " ")
    if wanted.shape != got.shape:
        return f"differs: shape {tuple(got.shape)}, wanted {tuple(wanted.shape)}"
    away = (wanted - got).abs().max().item()
    scale = wanted.abs().max().item()
    if torch.allclose(wanted, got, atol=1e-6 + 2e-6 * scale, rtol=2e-5):
        return f"agrees: {away:.1e} of {scale:.1e}"
    return f"differs: {away:.1e} of {scale:.1e}"


def compile_cuda(path: pathlib.Path, full: bool) -> str:
    """Compiles what an answer would give to load_inline: against a stub, or with torch's headers."""
    import torch.utils.cpp_extension as extension

    asked: dict = {}
    real = extension.load_inline

    def record(**arguments: object) -> object:
        asked.update(arguments)
        return None

    extension.load_inline = record
    try:
        load_candidate(path, "answer_" + path.stem)
    finally:
        extension.load_inline = real
    if full:
        with tempfile.TemporaryDirectory() as folder:
            os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
            try:
                real(**(asked | {"build_directory": folder, "verbose": False}))
            except Exception as e:  # noqa: BLE001
                return "fails: " + str(e)[-300:].replace("\n", " ")
            return "builds and loads"
    text = asked["cuda_sources"]
    text = text if isinstance(text, str) else "\n".join(text)
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        for header in ("torch/extension.h", "c10/cuda/CUDAStream.h"):
            (base / header).parent.mkdir(parents=True, exist_ok=True)
            (base / header).write_text(STUB)
        (base / "x.cu").write_text(text)
        nvcc = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin/nvcc"
        done = subprocess.run(
            [nvcc, "-arch=sm_90", "-std=c++17", f"-I{base}", "-c", "x.cu", "-o", "x.o"],
            cwd=base,
            capture_output=True,
            text=True,
        )
        return "compiles" if done.returncode == 0 else "fails: " + done.stderr[:300].replace("\n", " ")


def expected(row: dict, result: str, linked: bool) -> bool:
    """Whether a result is what the manifest says of an answer."""
    if row["language"] == "cuda":
        fails = row["kind"] == "no_compile" and (linked or "missing_symbol" not in row["file"])
        return result.startswith("fails") == fails
    if row["kind"] == "right":
        return result.startswith("agrees")
    if row["kind"] == "hack":
        return True
    return not result.startswith("agrees")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=pathlib.Path, required=True)
    parser.add_argument("--nvcc", choices=["no", "stub", "all"], default="no")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    os.environ["TRITON_INTERPRET"] = "1"
    problems = load_problems(options.problems)
    bad = 0
    for row in json.loads((HERE / "manifest.json").read_text()):
        if options.patterns and not any(fnmatch.fnmatch(row["file"], x) for x in options.patterns):
            continue
        path = HERE / row["file"]
        if row["language"] == "cuda":
            if options.nvcc == "no":
                continue
            result = compile_cuda(path, options.nvcc == "all")
        elif any(x in row["file"] for x in ("hang", "illegal", "segfault", "stream")):
            continue
        else:
            key = (row["level"], row["problem_id"])
            result = compare(problems[key], path, SMALL[key])
        ok = expected(row, result, options.nvcc == "all")
        bad += not ok
        print("ok    " if ok else "BROKEN", f"{row['kind']:10} {row['file']:55} {result}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
