"""Elements of an output that hang on the last bits of the inputs. Where terms of very unequal sizes cancel in front of a function that
saturates, two honest orders of the arithmetic differ by more than any bound. No candidate has a say in which elements these are."""

from typing import Any

import torch

from kernelmill_torch.admission import runs_moved
from kernelmill_torch.contents import wide_type
from kernelmill_torch.problem import Problem, chunks

MOVES = 6
STEP = 2.0**-22  # relative, of the inputs: some roundings of float32
TIMES = 16.0  # what such moves show: sums have more roundings than inputs


def unsteadiness(inputs: list[Any], problem: Problem) -> list[torch.Tensor]:
    """By how much each element of the model's outputs moves with the last bits of its inputs, whose copies are changed."""
    return moves_of(inputs, problem)[1]


def moves_of(inputs: list[Any], problem: Problem) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The model's outputs in its own precision, and their unsteadiness()."""
    runs = runs_moved(inputs, problem, STEP, MOVES)
    plain = next(runs)
    result = [torch.zeros_like(x, dtype=wide_type(x), memory_format=torch.contiguous_format) for x in plain]
    for moved in runs:
        widen(result, plain, moved)
        del moved  # before the model runs once more
    return plain, result


def widen(result: list[torch.Tensor], plain: list[torch.Tensor], moved: list[torch.Tensor]) -> None:
    """The result as it is, or as far as the others are apart where that is more."""
    for whole in zip(result, plain, moved):
        for most, x, y in chunks(*whole) if whole[0].is_floating_point() else ():
            torch.maximum(most, (y - x).abs(), out=most)


def forgiven(got: torch.Tensor, want: torch.Tensor, unsteady: torch.Tensor) -> torch.Tensor:
    """The output, with what is wanted where nobody can know it better, or the problem's own precision has no number."""
    if not want.is_floating_point():
        return got
    result = torch.empty_like(want, dtype=wide_type(want), memory_format=torch.contiguous_format)
    for to, x, w, moves in chunks(result, got, want, unsteady):
        x = x.to(w.dtype)
        is_near = ((x - w).abs() <= TIMES * moves.to(w.dtype)) & torch.isfinite(moves)
        to.copy_(torch.where(is_near | ~torch.isfinite(w), w, x))
    return result
