"""What a problem's own model does with the memory of its inputs."""

import inspect
from typing import Any, Sequence

import torch

from kernelmill_torch import compare
from kernelmill_torch.problem import Problem

SEED = 3


def place(x: torch.Tensor) -> int:
    return getattr(x, "untyped_storage", x.storage)().data_ptr()  # the first since torch 2.0


def shares_inputs(problem: Problem) -> bool:
    """Whether outputs of the model lie in the memory of its inputs."""
    inputs = problem.draw(SEED)
    places = {place(x) for x in inputs if isinstance(x, torch.Tensor)}
    return any(place(x) in places for x in problem.run(inputs))


def written_inputs(problem: Problem) -> list[int]:
    """Positions of inputs that the model writes to, beyond those that the task declares."""
    inputs = problem.draw(SEED)
    before = [x.clone() if isinstance(x, torch.Tensor) else None for x in inputs]
    problem.run(inputs)
    return [
        i for i, (now, was) in enumerate(zip(inputs, before)) if was is not None and not compare.same_bytes(now, was)
    ]


def name_of(problem: Problem, at: int) -> str:
    """An input as `Model.forward` names it."""
    try:
        names = list(inspect.signature(problem.module.Model.forward).parameters)[1:]
        return f"input {at} ({names[at]})"
    except (AttributeError, IndexError, TypeError, ValueError):
        return f"input {at}"


def why_not_declared(problem: Problem, written: Sequence[int]) -> str:
    """What the author of a task is told of inputs that the model writes to."""
    every = sorted({*problem.mutates, *written})
    return (
        f"the model changes its inputs: Model.forward of {problem.path} writes to "
        f"{', '.join(name_of(problem, i) for i in written)}; declare it in task.json, "
        f'"mutates": {every}, so that what is left there is compared as an output, or have the model work on a copy'
    )


def why_not_mutable(inputs: Sequence[Any], mutates: Sequence[int]) -> str:
    """What is wrong with the positions that a task declares; empty where nothing is."""
    for i in mutates:
        if i >= len(inputs) or not isinstance(inputs[i], torch.Tensor):
            return f"mutates names input {i}, which is no tensor that get_inputs() returns"
    return ""
