"""A function that a task lets modules define in place of ModelNew: "run:arguments", or "custom_kernel:tuple"."""

from types import ModuleType
from typing import Any, Callable


def name_of(entry: str) -> str:
    return entry.partition(":")[0]


def wanted(entry: str) -> str:
    """What a module that has neither lacks, in words."""
    return f"no class ModelNew and no function {name_of(entry)}" if entry else "no class ModelNew"


def adopt(module: ModuleType, entry: str) -> None:
    """Gives a module that defines the function, and no ModelNew, a ModelNew that calls it. ModelNew goes before."""
    if not entry or callable(getattr(module, "ModelNew", None)):
        return
    function = getattr(module, name_of(entry), None)
    if callable(function):
        module.ModelNew = model_of(function, entry.endswith(":tuple"))


def model_of(function: Callable, takes_tuple: bool) -> type:
    """A class of models without parameters that call a function."""
    import torch

    class ModelNew(torch.nn.Module):
        def __init__(self, *_arguments: Any):
            super().__init__()

        if takes_tuple:

            def forward(self, *inputs: Any) -> Any:
                return function(inputs)

        else:

            def forward(self, *inputs: Any) -> Any:
                return function(*inputs)

    return ModelNew
