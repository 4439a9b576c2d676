"""Inputs that a problem leaves uninitialised, as memory for outputs. Rubbish of ours is not to reach a candidate, who could find earlier
answers in it, and differs from draw to draw, so that each candidate would seem to have changed it."""

import contextlib
from typing import Any

import torch

try:
    from torch.overrides import TorchFunctionMode
except ImportError:  # before torch 1.13
    TorchFunctionMode = None

MAKERS = {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty}


def fill(x: torch.Tensor) -> torch.Tensor:
    """No value that an answer may leave there: NaN, or the largest integer."""
    with torch.no_grad():
        if x.dtype == torch.bool:
            return x.fill_(True)
        if x.is_floating_point() or x.is_complex():
            return x.fill_(float("nan"))
        return x.fill_(torch.iinfo(x.dtype).max)


def filled() -> contextlib.AbstractContextManager:
    """Within, what torch makes uninitialised has the same contents each time."""
    if TorchFunctionMode is None:
        return contextlib.nullcontext()

    class Filled(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None) -> Any:
            result = func(*args, **(kwargs or {}))
            return fill(result) if func in MAKERS else result

    return Filled()
