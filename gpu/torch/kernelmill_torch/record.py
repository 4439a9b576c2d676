"""Imports a candidate where nothing is built and no GPU is, and tells what extensions it asks for.

    python record.py CANDIDATE.py OUTPUT BACKEND CAPABILITY INIT

Runs in the sandbox. OUTPUT (a path) gets lines of JSON; the last one is the report. BACKEND is "cpu"
or "cuda"; CAPABILITY is "9.0" or so; INIT is a file of torch.save with the arguments of ModelNew, or "-".

A report: {"stage": "ready" | "imported" | "constructed",
           "requests": [{"key": HEX, "request": {...}}],    see extension_request.py
           "error": null | {"type", "message", "line", "traceback"},   of the import; line 0: unknown
           "has_model_new": bool,
           "incomplete": bool,       the import ended because it wanted the GPU
           "triton_kernels": [names], "cuda_kernels": [names]}

The candidate runs in this very process and can forge the report. All that it decides is what the
toolchain builds, in the sandbox, into the candidate's own artifact.
"""

import ast
import importlib.util
import json
import os
import re
import signal
import sys
import traceback
from typing import Any, Dict, List, Optional

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from kernelmill_torch import extension_request  # noqa: E402

MODULE_NAME = "kernelmill_candidate"
SHOWN_NAME = "<candidate>"
MOST_EXTENSIONS = 16
MOST_MESSAGE = 4000
CONSTRUCTION_SECONDS = 15


class NoDevice(RuntimeError):
    """Raised where CUDA would be initialised."""


class NotBuilt(RuntimeError):
    """Raised where a function of an extension is called while extensions are only recorded."""


class TooSlow(BaseException):
    """Ends the construction of ModelNew."""


class Placeholder:
    """Stands for the module of an extension: every attribute is a function that cannot be called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)

        def absent(*_args: Any, **_kwargs: Any) -> Any:
            raise NotBuilt(f"{self.__name__}.{attribute} was called at import: it is not built yet")

        absent.__name__ = attribute
        return absent


class Recorder:
    """Keeps the requests, in order, each once."""

    def __init__(self) -> None:
        self.requests: Dict[str, extension_request.Request] = {}

    def answer(self, request: extension_request.Request) -> Placeholder:
        key = extension_request.key(request)
        if key not in self.requests:
            if len(self.requests) >= MOST_EXTENSIONS:
                raise extension_request.RequestError(f"more than {MOST_EXTENSIONS} extensions in one module")
            self.requests[key] = request
        return Placeholder(request["name"])


# -- what the source says ---------------------------------------------------------------------------


def _is_triton_jit(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
    return (isinstance(node, ast.Attribute) and node.attr == "jit") or (
        isinstance(node, ast.Name) and node.id in ("jit", "triton_jit")
    )


def triton_kernels(tree: ast.AST) -> List[str]:
    """Names of the functions that a decorator named jit makes kernels of."""
    functions = (x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef))
    return [x.name for x in functions if any(_is_triton_jit(d) for d in x.decorator_list)]


def cuda_kernels(text: str) -> List[str]:
    """Names of the __global__ functions in CUDA source text."""
    bounds = r"(?:__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?"
    before = r"__global__\s+(?:static\s+|inline\s+)?" + bounds
    return re.findall(before + r"void\s+" + bounds + r"(\w+)\s*\(", text)


def defines(tree: ast.Module, name: str) -> bool:
    """Whether a statement of the module's top level binds `name`."""
    for x in ast.walk(tree):
        if isinstance(x, (ast.ClassDef, ast.FunctionDef)) and x.name == name:
            return True
        if isinstance(x, ast.Name) and x.id == name and isinstance(x.ctx, ast.Store):
            return True
    return False


# -- a GPU that is not there ------------------------------------------------------------------------


def _lazy_init(*_args: Any, **_kwargs: Any) -> None:
    raise NoDevice("there is no GPU where extensions are recorded")


def pretend_cuda(capability: str) -> None:
    """Makes torch.cuda look as if one GPU were there, as far as that is harmless."""
    import types

    import torch

    major, minor = (int(x) for x in capability.split("."))
    properties = types.SimpleNamespace(
        name="NVIDIA GPU", major=major, minor=minor, multi_processor_count=132, total_memory=80 << 30,
        warp_size=32, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=227 << 10, L2_cache_size=50 << 20,
    )
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "is_initialized": False,
        "get_device_name": properties.name, "get_device_capability": (major, minor),
        "get_device_properties": properties, "synchronize": None, "empty_cache": None, "set_device": None,
        "is_bf16_supported": major >= 8, "get_arch_list": [f"sm_{major}{minor}"],
    }
    for name, value in answers.items():
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, lambda *_args, _value=value, **_kwargs: _value)
    torch.cuda._lazy_init = _lazy_init


def on_cpu() -> Any:
    """A context in which torch functions make on the CPU what they are asked to make on a GPU."""
    import contextlib

    import torch

    try:
        from torch.overrides import TorchFunctionMode
    except ImportError:
        return contextlib.nullcontext()

    def moved(x: Any) -> Any:
        if isinstance(x, torch.device):
            return torch.device("cpu") if x.type == "cuda" else x
        return "cpu" if isinstance(x, str) and re.fullmatch(r"cuda(:\d+)?", x) else x

    class OnCpu(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.Tensor.cuda:
                return args[0]
            return function(*(moved(x) for x in args), **{k: moved(v) for k, v in (kwargs or {}).items()})

    return OnCpu()


# -- recording --------------------------------------------------------------------------------------


def _wanted_device(problem: Optional[BaseException]) -> bool:
    seen = set()
    while problem is not None and id(problem) not in seen:
        seen.add(id(problem))
        if isinstance(problem, (NoDevice, NotBuilt)):
            return True
        text = str(problem)
        if isinstance(problem, (RuntimeError, AssertionError)) and (
            "NVIDIA driver" in text or "not compiled with CUDA" in text or "0 active drivers" in text
        ):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def describe(problem: BaseException, path: str) -> Dict[str, Any]:
    """Type, message, the last line of `path` involved (0: none), and a traceback without our own frames."""
    frames = [x for x in traceback.extract_tb(problem.__traceback__) if x.filename != __file__]
    frames = [x for x in frames if not x.filename.startswith("<frozen importlib")]
    line = next((x.lineno for x in reversed(frames) if x.filename == path), 0)
    if isinstance(problem, SyntaxError) and problem.filename == path:
        line = problem.lineno or 0
    lines = traceback.format_list(frames[-20:]) + traceback.format_exception_only(type(problem), problem)
    text = "".join(lines)
    try:
        message = problem.msg if isinstance(problem, SyntaxError) else str(problem)
    except Exception:
        message = ""
    return {
        "type": type(problem).__name__[:200],
        "message": str(message)[:MOST_MESSAGE],
        "line": line or 0,
        "traceback": text.replace(path, SHOWN_NAME)[-4 * MOST_MESSAGE :],
    }


class Session:
    """One candidate: its report so far."""

    def __init__(self, path: str, output: str) -> None:
        self.path = path
        self.output = output
        self.recorder = Recorder()
        self.report: Dict[str, Any] = {
            "error": None, "has_model_new": False, "incomplete": False,
            "triton_kernels": [], "cuda_kernels": [],
        }

    def say(self, stage: str) -> None:
        requests = [{"key": key, "request": request} for key, request in self.recorder.requests.items()]
        texts = [s["text"] for r in self.recorder.requests.values() for s in r["sources"]]
        kernels = [name for text in texts for name in cuda_kernels(text)]
        report = dict(self.report, stage=stage, requests=requests, cuda_kernels=kernels[:100])
        with open(self.output, "ab") as file:
            file.write(json.dumps(report).encode() + b"\n")

    def load(self) -> Any:
        """The imported module; None when the import failed, and then the report says why."""
        try:
            with open(self.path, encoding="utf-8") as file:
                tree = ast.parse(file.read(), self.path)
            self.report["triton_kernels"] = triton_kernels(tree)[:100]
        except (SyntaxError, ValueError) as problem:
            self.report["error"] = describe(problem, self.path)
            return None
        spec = importlib.util.spec_from_file_location(MODULE_NAME, self.path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE_NAME] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as problem:  # SystemExit and KeyboardInterrupt too
            if _wanted_device(problem):
                self.report["incomplete"] = True
                self.report["has_model_new"] = defines(tree, "ModelNew")
            else:
                self.report["error"] = describe(problem, self.path)
            return None
        self.report["has_model_new"] = callable(getattr(module, "ModelNew", None))
        return module

    def construct(self, module: Any, init: str) -> None:
        """Calls ModelNew for the requests that its constructor makes. What goes wrong is no matter here."""
        import torch

        def too_slow(*_args: Any) -> None:
            raise TooSlow()

        signal.signal(signal.SIGALRM, too_slow)
        signal.alarm(CONSTRUCTION_SECONDS)
        try:
            try:
                values = torch.load(init, weights_only=False)
            except TypeError:  # torch 1.13 knows no weights_only
                values = torch.load(init)
            for context in (lambda: torch.device("meta"), on_cpu):
                try:
                    with context():
                        module.ModelNew(*values)
                    break
                except Exception:
                    continue
        except BaseException:
            pass
        finally:
            signal.alarm(0)


def main(arguments: List[str]) -> int:
    candidate, output, backend, capability, init = arguments
    import torch  # noqa: F401

    session = Session(candidate, output)
    extension_request.install(session.recorder.answer)
    if backend == "cuda":
        pretend_cuda(capability)
    session.say("ready")
    sys.argv = [candidate]
    with on_cpu():
        module = session.load()
    session.say("imported")
    if module is not None and session.report["has_model_new"] and init != "-":
        session.construct(module, init)
        session.say("constructed")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # neither its threads nor its exit handlers are waited for


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
