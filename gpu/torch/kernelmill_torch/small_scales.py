"""Whether elements are right by their own size, too. Where parts of an output are far smaller than others (decays, products, sums of
exponentials), the bound of the whole is none of theirs: zeros would pass in nine tenths of them. No candidate has a say in what is
asked of an element."""

import random
from typing import Any

import torch

from kernelmill_torch.problem import Problem, chunks
from kernelmill_torch.steadiness import moves_of

RELATIVE = 2.0**-12  # of an element: less is right in any case
STEADY = (
    2.0**7
)  # times what the last bits of the inputs move it: sums in another order stay below, roundings to tf32 do not
OWN = 2.0**6  # times what the model is off there in its own precision
LEAST = 2.0**-100  # of an element: smaller ones may be rounded to zero
MOST = 0.01  # of an output's elements that are not zero, and
MOST_COUNT = 1  # element
FEWEST = 8  # elements that are not zero
SAMPLE = 1024  # places of a timed output
AGAIN = 0.25  # chance to look at all of another one, after one that was right
ANYHOW = (
    0.25  # chance to look at all of a timed output whatever its places say, where the model misses more than the MOST
)


def is_asked(x: torch.Tensor) -> bool:
    return x.is_floating_point() and x.numel() >= FEWEST


def share(wrong: torch.Tensor, asked: torch.Tensor) -> float:
    """Of the elements that are asked, counted on the device; 0 where they, or those that are wrong, are few."""
    wrong, asked = torch.stack([wrong, asked]).tolist()
    return wrong / asked if asked >= FEWEST and wrong > MOST_COUNT else 0.0


def missed(got: torch.Tensor, want: torch.Tensor) -> float:
    """The share of elements that are not right in any case. Nobody saves the work of a zero."""
    if not is_asked(want):
        return 0.0
    found = [
        ((((a.to(b.dtype) - b).abs() > RELATIVE * b.abs().clamp(min=LEAST)) & (b != 0)).sum(), (b != 0).sum())
        for a, b in chunks(got, want)
    ]
    return share(*(torch.stack(x).sum() for x in zip(*found)))


def far_off(got: torch.Tensor, want: torch.Tensor, plain: torch.Tensor, unsteady: torch.Tensor) -> float:
    """The share of elements that are wrong by their own size. `plain`: the model's in its own precision."""
    if not is_asked(want):
        return 0.0
    found, asked = torch.zeros((2,), dtype=torch.int64, device=want.device)
    for a, b, own, moves in chunks(got, want, plain, unsteady):
        b = b.double()
        allowed = torch.maximum(RELATIVE * b.abs(), STEADY * moves.double())
        allowed = torch.maximum(allowed, OWN * (own.double() - b).abs())
        found += (((a.double() - b).abs() > allowed.clamp_(min=LEAST)) & (b != 0)).sum()
        asked += (b != 0).sum()
    return share(found, asked)


class SmallScales:
    """Of one candidate. Thread safety: none."""

    def __init__(self) -> None:
        self.usual = 0.0  # share that the problem's own model misses, where that was looked at
        self.was_right = False  # a timed output, of which all was looked at

    def wrong(self, got: list[torch.Tensor], want: list[torch.Tensor], inputs: list[Any], problem: Problem) -> float:
        """The largest share of an output's elements that are wrong by their own size, if that is more than the MOST. `want` is exact;
        copies of inputs are changed. Raises OUT_OF_MEMORY: who leaves too little is not right by that."""
        if max((missed(*x) for x in zip(got, want)), default=0.0) <= MOST:
            return 0.0
        plain, unsteady = moves_of(inputs, problem)
        self.usual = max(self.usual, max(missed(*x) for x in zip(plain, want)))
        found = max(far_off(*x) for x in zip(got, want, plain, unsteady))
        return found if found > MOST else 0.0

    def seems_wrong(self, got: list[torch.Tensor], want: list[torch.Tensor], places: torch.Generator) -> bool:
        """Whether all of a timed call is to be looked at, by some elements of its outputs and by what the model gives; the places are
        drawn. Where the model misses much, at times so in any case: as much that a candidate leaves out is hidden by that."""
        dice = random.SystemRandom()
        if self.usual > MOST and dice.random() < ANYHOW and any(map(is_asked, want)):
            return True
        if self.was_right and dice.random() > AGAIN:
            return False
        for a, b in zip(got, want):
            if is_asked(b):
                at = torch.randint(0, b.numel(), (SAMPLE,), generator=places, device=b.device)
                if missed(a.reshape(-1)[at], b.reshape(-1)[at]) > 2 * (MOST + self.usual):
                    return True
        return False
