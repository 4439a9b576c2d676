"""Runs snippets in Python, by an interpreter that has torch: reads JSON of check.py or measure.py, prints JSON lines.

PyTorch: `f` of both forms is called and compared, and timed where seconds are asked for. Triton without a GPU: `f` is
called with launches that only compile, for the H100's architecture; without Triton only Python has parsed it.
"""

import importlib.util
import json
import sys
import time

import torch

try:
    import triton
except ImportError:
    triton = None

DTYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "half": torch.float16,
    "bf16": torch.bfloat16,
    "int": torch.int32,
    "int64": torch.int64,
    "int8": torch.int8,
    "uint8": torch.uint8,
}


def loaded(path):
    """The snippet's module, with the names that snippets use without importing them."""
    spec = importlib.util.spec_from_file_location("snippet", path)
    module = importlib.util.module_from_spec(spec)
    module.torch, module.F = torch, torch.nn.functional
    if triton:
        module.triton, module.tl = triton, triton.language
    spec.loader.exec_module(module)
    return module


def arguments_of(bench, device):
    torch.manual_seed(1)
    result = []
    for x in bench:
        if not x["type"]:
            result.append(float(x["value"]) if "." in x["value"] else int(x["value"]))
            continue
        dtype = DTYPES[x["type"]]
        if dtype.is_floating_point:
            value = (torch.rand(x["shape"]) * 2 - 1).to(dtype)
        else:
            value = torch.randint(0, x["below"] or 100, x["shape"]).to(dtype)
        result.append(value.to(device))
    return result


def listed(x):
    return [y.double() for y in (x if isinstance(x, (tuple, list)) else [x]) if y is not None]


def error_of(a, b):
    worst = 0.0
    for x, y in zip(listed(a), listed(b), strict=True):
        if x.shape != y.shape:
            return float("inf")
        difference = (x - y).abs().nan_to_num(float("inf"))
        worst = max(worst, float(difference.max() / x.abs().max().clamp(min=1e-30)))
    return worst


def call_seconds(f, arguments, calls, device):
    start = time.perf_counter()
    for _ in range(calls):
        f(*arguments)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


@torch.no_grad()
def compare(job, device):
    arguments = arguments_of(job["bench"], device)
    before, after = (loaded(job[x]).f for x in ("before", "after"))
    result = {"error": error_of(before(*arguments), after(*arguments))}
    if job["seconds"] > 0:
        torch.set_num_threads(1)  # of a processor; none of the pairs is about threads, and one is steady
        window = 1e-2 if device == "cuda" else 3e-4
        calls = {f: max(1, int(window / call_seconds(f, arguments, 2, device))) for f in (before, after)}
        least = {f: [float("inf")] * 2 for f in calls}  # of samples with even and with odd numbers
        until, n = time.perf_counter() + job["seconds"], 0
        while n < 10 or time.perf_counter() < until:
            for f in calls:
                least[f][n % 2] = min(least[f][n % 2], 1e9 * call_seconds(f, arguments, calls[f], device))
            n += 1
        result |= {"before": least[before], "after": least[after]}
    return result


def only_compile():
    """Makes launches of Triton compile for sm_90, and return."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import JITFunction, driver

    class Driver:
        def get_current_target(self):
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self):
            return 0

        def get_current_stream(self, device):
            return 0

        def get_device_interface(self):
            return torch.cuda

        def get_active_torch_device(self):
            return torch.device("cpu")

        def get_benchmarker(self):
            return lambda call, **_: call() and [1.0, 1.0, 1.0] or [1.0, 1.0, 1.0]

        def get_empty_cache_for_benchmark(self):
            return torch.empty(1)

        def clear_cache(self, cache):
            pass

    driver.set_active(Driver())
    run = JITFunction.run
    JITFunction.run = lambda self, *a, grid, warmup, **k: run(self, *a, grid=grid, warmup=True, **k)


def main():
    jobs = json.load(sys.stdin)
    has_gpu = torch.cuda.is_available()
    if triton and not has_gpu:
        only_compile()
    for job in jobs:
        result = {"id": job["id"]}
        version = tuple(int(x) for x in torch.__version__.split(".")[:2])
        try:
            if tuple(job["torch"]) > version:
                result["skipped"] = "needs PyTorch " + ".".join(map(str, job["torch"]))
            elif job["triton"] and (not triton or not has_gpu):
                if not triton:
                    result["skipped"] = "Triton is missing"
                for path in filter(None, (job["before"], job["after"])) if triton else []:
                    loaded(path).f(*arguments_of(job["bench"], "cpu"))
            elif job["before"]:
                device = "cuda" if has_gpu and (job["triton"] or job["device"] == "cuda") else "cpu"
                result |= compare(job, device)
            else:
                loaded(job["after"]).f(*arguments_of(job["bench"], "cuda" if job["triton"] else "cpu"))
        except Exception as e:
            result["failed"] = f"{type(e).__name__}: {e}"
        print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
