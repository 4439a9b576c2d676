"""The benchmark, in a fresh process that evaluates one answer: `worker.py REQUEST.json`."""

from __future__ import annotations

import importlib.util
import json
import math
import pathlib
import sys
import time
import types

# What kernelbench/__init__.py and utils.py import to talk to language models, and pydantic, of which eval.py
# takes a base class. None of it takes part in an evaluation; each stands in only where it is missing.
STAND_INS: dict[str, tuple[str, ...]] = {
    "dotenv": ("load_dotenv",),
    "openai": ("OpenAI",),
    "litellm": ("completion",),
    "tqdm": ("tqdm",),
    "requests": (),
    "pydantic": ("BaseModel",),
}

# Names that the benchmark's set_gpu_arch takes, by compute capability.
ARCHITECTURES = {
    (7, 0): "Volta",
    (7, 5): "Turing",
    (8, 0): "Ampere",
    (8, 6): "Ampere",
    (8, 9): "Ada",
    (9, 0): "Hopper",
    (10, 0): "Blackwell",
    (12, 0): "Blackwell",
}


class RecordBase:
    """Stands in for pydantic.BaseModel: fields with defaults, set by keyword."""

    def __init__(self, **values: object) -> None:
        for base in reversed(type(self).__mro__):
            for name in base.__dict__.get("__annotations__", {}):
                default = getattr(type(self), name, None)
                setattr(self, name, values.get(name, dict(default) if isinstance(default, dict) else default))


def stand_in() -> list[str]:
    """Puts a module into sys.modules for each of STAND_INS that is missing; returns their names."""
    made = []
    for name, attributes in STAND_INS.items():
        if importlib.util.find_spec(name) is not None:
            continue
        module = types.ModuleType(name)
        for attribute in attributes:
            setattr(module, attribute, RecordBase if attribute == "BaseModel" else lambda *a, **k: None)
        sys.modules[name] = module
        made.append(name)
    return made


def plain(value: object, longest: int = 600) -> object:
    """Returns something that JSON can hold: exceptions and the like as the end of their text."""
    if isinstance(value, dict):
        return {str(k): plain(v, longest) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, longest) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    text = str(value)
    return text if len(text) <= longest else "..." + text[-longest:]


def benchmark_worker(request_path: str) -> None:
    """The whole life of a fresh process that evaluates one answer with the benchmark."""
    started = time.monotonic()
    request = json.loads(pathlib.Path(request_path).read_text())
    sys.path.insert(0, str(pathlib.Path(request["kernelbench"]) / "src"))
    made = stand_in()
    import torch
    from kernelbench import eval as benchmark
    from kernelbench import utils

    device = torch.device("cuda:0")
    utils.set_gpu_arch([ARCHITECTURES[torch.cuda.get_device_capability(device)]])
    imported = time.monotonic()
    result: dict = {"stand_ins": made, "compiled": False, "correctness": False}
    try:
        outcome = benchmark.eval_kernel_against_ref(
            original_model_src=request["problem"],
            custom_model_src=request["answer"],
            measure_performance=True,
            timing_method="cuda_event",
            verbose=False,
            num_correct_trials=5,
            num_perf_trials=100,
            build_dir=request["build"],
            device=device,
            backend=request["backend"],
            precision=torch.float32,
        )
    except Exception as e:  # noqa: BLE001  the batch script, too, makes a verdict of whatever comes
        kind = "cuda_error" if "CUDA error" in str(e) else "other_error"
        result["metadata"] = {kind: str(e), kind + "_name": type(e).__name__}
    else:
        if outcome is None:
            result["nothing"] = True
            result["metadata"] = {"error": "the evaluator returned None, which asks for another try"}
        else:
            for name in (
                "compiled",
                "correctness",
                "metadata",
                "runtime",
                "runtime_stats",
                "ref_runtime",
                "ref_runtime_stats",
            ):
                result[name] = getattr(outcome, name)
    result["import_s"] = imported - started
    result["eval_s"] = time.monotonic() - imported
    temporary = pathlib.Path(request["result"] + ".new")
    temporary.write_text(json.dumps(plain(result)))
    temporary.rename(request["result"])


if __name__ == "__main__":
    benchmark_worker(sys.argv[1])
