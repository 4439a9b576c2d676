"""How many bytes every answer to a problem must read and write, whatever its kernels are.

An input of which places that nobody chose, and whole blocks, all matter to the output must be read whole. Zeros are
not counted, nor the half of a symmetric matrix, for who knows of them need not read them."""

import random
import time

import torch

from kernelmill_torch.problem import Problem

SEED = 23
PLACES = 24
SECONDS = 2.0  # for one problem; what takes longer is limited by other things than reading
BLOCKS = 4
LEAST_BYTES = 1 << 20  # of an input, below which it counts for nothing
L2_BYTES = 64 << 20  # where torch does not say how large it is


def bytes_of(x: torch.Tensor) -> int:
    return x.numel() * x.element_size()


def cache_bytes(device: str) -> int:
    """Of the last-level cache."""
    if device != "cuda":
        return L2_BYTES
    return getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0) or L2_BYTES


def floor_bytes(problem: Problem, outputs: int) -> float:
    """Of one call on cold caches, without parameters (weights.py). `outputs`: bytes of these, which may stay in the L2 cache."""
    end = time.monotonic() + SECONDS
    total = max(0, outputs - cache_bytes(problem.device))
    if problem.is_random:
        return total
    inputs = problem.draw(SEED)
    right = problem.run(inputs)
    if not all(map(torch.equal, right, problem.run(inputs))):
        return total  # nothing can be said of bits that vary
    for i, (x, traits) in enumerate(zip(inputs, problem.traits())):
        if traits is None or bytes_of(x) < LEAST_BYTES or not matters(problem, inputs, i, right, end):
            continue
        sample = x.reshape(-1)[torch.randint(0, x.numel(), (1 << 14,), device=x.device)]
        share = float((sample != 0).float().mean())
        total += bytes_of(x) * share * (0.5 if traits.symmetric else 1.0)
    return total


def matters(problem: Problem, inputs: list, at: int, right: list[torch.Tensor], end: float) -> bool:
    """Whether each of some places of an input, and each of its blocks, changes the output. False where there is no time to
    tell."""
    return all(
        time.monotonic() < end and any(changes(problem, inputs, at, span, sign, right) for sign in (1, -1))
        for span in spans_of(inputs[at].numel())
    )


def spans_of(n: int) -> list[tuple[int, int]]:
    """Places that nobody chose, and whole blocks, of so many numbers: the first and how many."""
    dice = random.SystemRandom()
    spans = [(place, 1) for place in (dice.randrange(n) for _ in range(PLACES))]
    return spans + [(n // BLOCKS * k, n // BLOCKS) for k in range(BLOCKS)]


def changes(
    problem: Problem, inputs: list, at: int, span: tuple[int, int], sign: int, right: list[torch.Tensor]
) -> bool:
    """Whether an output changes with some numbers of an input, which become much larger or smaller."""
    x = inputs[at].clone(memory_format=torch.contiguous_format)
    part = x.view(-1)[span[0] : span[0] + span[1]]
    if span[1] == 1 and float(part[0]) == 0:
        return True
    if span[1] == 1:  # so much that a sum of all shows it
        traits = problem.traits()[at]
        part.fill_(sign * traits.scale * max(16.0, traits.terms))
    else:
        part.mul_(8 * sign).add_(sign)
    other = [*inputs[:at], x, *inputs[at + 1 :]]
    if problem.has_checked_domain():
        part.copy_(inputs[at].reshape(-1).flip(0)[span[0] : span[0] + span[1]])
    return any(not torch.equal(a, b) for a, b in zip(problem.run(other), right))
