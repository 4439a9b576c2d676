"""A user's own model, run under torch's profiler: which submodules take its time, on what inputs, and how each was made. Trusted
code of the user's, run by the user's interpreter and in no sandbox."""

import functools
import importlib.util
import inspect
import math
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import torch

ARGUMENTS = "_kernelmill_arguments"  # of a module: what its constructor was given
LABEL = "kernelmill:"
PROFILED = 3  # runs of the model


class NotUsable(Exception):
    """Why a user's file gives no task, in words for people."""


@dataclass
class Made:
    """How a module was made: positional arguments and named ones."""

    args: tuple
    kwargs: dict[str, Any]


@dataclass
class Traced:
    """One submodule, as the run saw it."""

    path: str  # "blocks.0.attention"; empty: the whole
    module: torch.nn.Module
    calls: list[tuple[tuple, dict[str, Any]]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    share: float = 0.0  # of the whole model's time


def remember_arguments() -> Callable[[], None]:
    """From now on modules know what they were made with. Returns what ends that."""
    changed: list[tuple[type, Any]] = []

    def remembering(kind: type) -> None:
        if "__init__" not in vars(kind):
            return
        own = vars(kind)["__init__"]

        @functools.wraps(own)
        def init(self, *args, **kwargs):
            if type(self).__init__ is not init and ARGUMENTS in self.__dict__:
                return own(self, *args, **kwargs)  # of a base, called by the class itself
            self.__dict__.setdefault(ARGUMENTS, Made(args, kwargs))
            return own(self, *args, **kwargs)

        changed.append((kind, own))
        kind.__init__ = init

    def every(kind: type) -> None:
        for x in kind.__subclasses__():
            remembering(x)
            every(x)

    every(torch.nn.Module)
    had = vars(torch.nn.Module).get("__init_subclass__")

    def init_subclass(cls, **kwargs):
        super(torch.nn.Module, cls).__init_subclass__(**kwargs)
        remembering(cls)

    torch.nn.Module.__init_subclass__ = classmethod(init_subclass)

    def end() -> None:
        if had is None:
            del torch.nn.Module.__init_subclass__
        else:
            torch.nn.Module.__init_subclass__ = had
        for kind, own in changed:
            kind.__init__ = own

    return end


def load(path: str) -> Any:
    """The user's file as a module. Raises NotUsable."""
    path = os.path.abspath(path)
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NotUsable(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise NotUsable(f"failed to import {path}: {type(e).__name__}: {e}") from None
    return module


def model_of(module: Any, entry: str) -> torch.nn.Module:
    """The model that a file's `entry` is, or makes. Raises NotUsable."""
    made = getattr(module, entry, None)
    if made is None:
        raise NotUsable(f"it defines no {entry}; name a function that makes the model, or a model, with --entry")
    if not isinstance(made, torch.nn.Module):
        try:
            made = made()
        except Exception as e:
            raise NotUsable(f"{entry}() failed: {type(e).__name__}: {e}") from None
    if not isinstance(made, torch.nn.Module):
        raise NotUsable(f"{entry}() gives a {type(made).__name__} and no nn.Module")
    return made


def inputs_of(module: Any) -> list[Any]:
    """What a file's inputs() gives: the arguments of forward. Raises NotUsable."""
    if not callable(getattr(module, "inputs", None)):
        raise NotUsable("it defines no inputs(), which gives the arguments of forward")
    try:
        found = module.inputs()
    except Exception as e:
        raise NotUsable(f"inputs() failed: {type(e).__name__}: {e}") from None
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    if bad := [type(x).__name__ for x in found if not is_value(x)]:
        raise NotUsable(f"inputs() gives a {bad[0]}; tensors, numbers, booleans, texts and None can be given")
    return found


def is_value(x: Any) -> bool:
    return x is None or type(x) in (bool, int, float, str) or isinstance(x, torch.Tensor)


def device_of(model: torch.nn.Module, inputs: list[Any]) -> str:
    tensors = [*model.parameters(), *model.buffers(), *(x for x in inputs if isinstance(x, torch.Tensor))]
    return "cuda" if any(x.is_cuda for x in tensors) else "cpu"


def trace(model: torch.nn.Module, inputs: list[Any]) -> list[Traced]:
    """The whole and each submodule that was called, with its share of the time. Raises NotUsable."""
    known = {id(module): Traced(path, module) for path, module in model.named_modules()}
    handles, open_labels = [], []
    times: dict[str, float] = {}  # the least of all runs: on a busy machine one may take ten times as long
    for i, one in enumerate(known.values()):
        handles += hooks_of(one, f"{LABEL}{i}", open_labels)
    device = device_of(model, inputs)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    try:
        with torch.no_grad():
            model(*inputs)
            for _ in range(PROFILED):
                for x in known.values():
                    x.calls.clear(), x.outputs.clear()
                with torch.profiler.profile(activities=activities) as profile:
                    model(*inputs)
                    if device == "cuda":
                        torch.cuda.synchronize()
                for x in profile.key_averages():
                    if x.key.startswith(LABEL):
                        times[x.key] = min(times.get(x.key, math.inf), time_of(x, device))
    except Exception as e:
        raise NotUsable(f"the model fails on inputs(): {type(e).__name__}: {e}") from None
    finally:
        for x in handles:
            x.remove()
    result = [x for x in known.values() if x.calls]
    whole = max(times.get(LABEL + "0", 0.0), 1e-9)
    for i, x in enumerate(known.values()):
        x.share = min(1.0, times.get(f"{LABEL}{i}", 0.0) / whole)
    return result


def time_of(event: Any, device: str) -> float:
    if device == "cpu":
        return float(event.cpu_time_total)
    return float(getattr(event, "device_time_total", getattr(event, "cuda_time_total", 0.0)))


def hooks_of(one: Traced, label: str, stack: list) -> list:
    """Hooks that note each call and measure it under a label."""

    def before(_module, args, kwargs=None):
        one.calls.append((args, dict(kwargs or {})))
        mark = torch.profiler.record_function(label)
        mark.__enter__()
        stack.append(mark)

    def after(_module, *rest):
        stack.pop().__exit__(None, None, None)
        one.outputs.append(rest[-1])

    if "with_kwargs" in inspect.signature(one.module.register_forward_pre_hook).parameters:
        return [
            one.module.register_forward_pre_hook(before, with_kwargs=True),
            one.module.register_forward_hook(after),
        ]
    return [one.module.register_forward_pre_hook(before), one.module.register_forward_hook(after)]


def positional(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> Optional[list[Any]]:
    """The arguments of a call of forward as positional ones; None where some cannot be."""
    if not kwargs:
        return list(args)
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    return list(bound.args) if not bound.kwargs else None
