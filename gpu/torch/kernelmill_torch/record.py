"""Imports a candidate where nothing is built and no GPU is, and tells what extensions it asks for.

    python record.py CANDIDATE.py OUTPUT BACKEND CAPABILITY INIT [ENTRY]

Runs in the sandbox. OUTPUT (a path) gets lines of JSON; the last one is the report. BACKEND is "cpu"
or "cuda"; CAPABILITY is "9.0" or so; INIT is what init_inputs.py wrote of the problem, or "-"; ENTRY is as of entry.py.

A report: {"stage": "ready" | "imported" | "constructed" | "compiled",
           "requests": [{"key": HEX, "request": {...}}],    see extension_request.py
           "error": null | {"type", "message", "line", "traceback"},   of the import; line 0: unknown
           "has_model_new": bool,
           "incomplete": bool,       the import ended because it wanted the GPU
           "triton_files": {PATH: BASE64},   Triton's cache, of the kernels that could be compiled ahead
           "triton_problem": TRACEBACK}   why not all of them, or ""

The candidate runs in this very process and can forge the report. All that it decides is what the
toolchain builds, in the sandbox, into the candidate's own artifact.
"""

import ast
import contextlib
import importlib.util
import json
import os
import re
import signal
import sys
import traceback
import types
from typing import Any, Callable, Dict, Iterator, List, Optional

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from kernelmill_torch import artifact, entry, extension_request, triton_ahead  # noqa: E402

SHOWN_NAME = "<candidate>"
MOST_EXTENSIONS = 16
MOST_MESSAGE = 4000
CONSTRUCTION_SECONDS = 15
COMPILATION_SECONDS = 25


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


def gpu_properties(capability: str) -> types.SimpleNamespace:
    """The words of torch.cuda.get_device_properties, of an H200 but for the capability."""
    major, minor = (int(x) for x in capability.split("."))
    return types.SimpleNamespace(
        name="NVIDIA GPU",
        major=major,
        minor=minor,
        multi_processor_count=132,
        total_memory=80 << 30,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=227 << 10,
        L2_cache_size=50 << 20,
    )


def pretend_cuda(properties: types.SimpleNamespace) -> None:
    """Makes torch.cuda look as if one GPU were there, as far as that is harmless."""
    import torch

    major, minor = properties.major, properties.minor
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "is_initialized": False,
        "get_device_name": properties.name,
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        "synchronize": None,
        "empty_cache": None,
        "set_device": None,
        "is_bf16_supported": major >= 8,
        "get_arch_list": [f"sm_{major}{minor}"],
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

    def __init__(self, path: str, output: str, asked: str = "") -> None:
        self.path = path
        self.output = output
        self.asked = asked  # as of entry.py
        self.source = ""
        self.recorder = Recorder()
        self.report: Dict[str, Any] = {
            "error": None,
            "has_model_new": False,
            "incomplete": False,
            "triton_files": {},
            "triton_problem": "",
        }

    def say(self, stage: str) -> None:
        requests = [{"key": key, "request": request} for key, request in self.recorder.requests.items()]
        report = dict(self.report, stage=stage, requests=requests)
        with open(self.output, "ab") as file:
            file.write(json.dumps(report).encode() + b"\n")

    def load(self) -> Any:
        """The imported module; None when the import failed, and then the report says why."""
        try:
            with open(self.path, encoding="utf-8") as file:
                self.source = file.read()
            tree = ast.parse(self.source, self.path)
        except (SyntaxError, ValueError) as problem:
            self.report["error"] = describe(problem, self.path)
            return None
        spec = importlib.util.spec_from_file_location(artifact.MODULE_NAME, self.path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[artifact.MODULE_NAME] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as problem:  # SystemExit and KeyboardInterrupt too
            if _wanted_device(problem):
                self.report["incomplete"] = True
                names = ["ModelNew", *filter(None, [entry.name_of(self.asked)])]
                self.report["has_model_new"] = any(defines(tree, x) for x in names)
            else:
                self.report["error"] = describe(problem, self.path)
            return None
        entry.adopt(module, self.asked)
        self.report["has_model_new"] = callable(getattr(module, "ModelNew", None))
        return module

    def construct(self, module: Any, arguments: List[List[Any]]) -> None:
        """Calls ModelNew with each of these for the requests that its constructor makes. What goes wrong is no matter here."""
        import torch

        with time_limit(CONSTRUCTION_SECONDS, lambda _problem: None):
            for init in arguments:
                for context in (lambda: torch.device("meta"), on_cpu):
                    try:
                        with context():
                            module.ModelNew(*init)
                        break
                    except Exception:
                        continue

    def compile_triton(self, module: Any, shapes: List[Dict[str, Any]], capability: str) -> None:
        """Compiles the Triton kernels that forward launches at each shape, as far as that goes without a GPU."""

        def stopped(problem: BaseException) -> None:
            self.report["triton_problem"] = describe(problem, self.path)["traceback"][-MOST_MESSAGE:]

        if shapes[0]["inputs"] is None:
            self.report["triton_problem"] = (
                "get_inputs() of the problem gives no shapes: " + shapes[0]["inputs_problem"]
            )
            return
        with time_limit(COMPILATION_SECONDS, stopped):
            calls = [
                (lambda x=x: module.ModelNew(*x["init"]), [without_memory(y) for y in x["inputs"]])
                for x in shapes
                if x["inputs"] is not None
            ]
            triton_ahead.compile_forward(calls, self.path, capability, gpu_properties(capability))
        try:
            self.report["triton_files"] = triton_ahead.cache_files()
        except ValueError as problem:
            stopped(problem)
        if not self.report["triton_files"] and not self.report["triton_problem"]:
            self.report["triton_problem"] = "forward launched no Triton kernel"


@contextlib.contextmanager
def time_limit(seconds: int, stopped: Callable[[BaseException], None]) -> Iterator[None]:
    """Whatever is raised within ends it, and so does the time; `stopped` hears of it."""

    def too_slow(*_args: Any) -> None:
        raise TooSlow()

    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(seconds)
    try:
        yield
    except BaseException as problem:
        stopped(problem)
    finally:
        signal.alarm(0)


def without_memory(x: Any) -> Any:
    """An input as init_inputs.py tells it: a tensor's shape, strides and type become one on "meta"."""
    import torch

    if not isinstance(x, dict):
        return x
    return torch.empty_strided(x["shape"], x["strides"], dtype=getattr(torch, x["dtype"]), device="meta")


def read_problem(path: str) -> Optional[Dict[str, Any]]:
    """What init_inputs.py wrote; None when it could not write anything."""
    import torch

    if path == "-":
        return None
    try:
        return torch.load(path, weights_only=False)
    except TypeError:  # torch 1.13 knows no weights_only
        return torch.load(path)


def main(arguments: List[str]) -> int:
    candidate, output, backend, capability, init, *rest = arguments
    import torch  # noqa: F401

    session = Session(candidate, output, *rest[:1])
    extension_request.install(session.recorder.answer)
    if backend == "cuda":
        pretend_cuda(gpu_properties(capability))
    session.say("ready")
    sys.argv = [candidate]
    with on_cpu():
        module = session.load()
    if session.report["incomplete"] and backend == "cuda" and "triton" in session.source:
        session.report["triton_problem"] = "the module wants a GPU when it is imported"
    session.say("imported")
    problem = read_problem(init)
    if module is not None and session.report["has_model_new"] and problem is not None:
        # At visible variants, too, for what a constructor or a first call builds there.
        shapes = [problem, *problem["variants"]]
        session.construct(module, [x["init"] for x in shapes])
        session.say("constructed")
        if backend == "cuda" and "triton" in session.source:
            session.compile_triton(module, shapes, capability)
            session.say("compiled")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # neither its threads nor its exit handlers are waited for


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
