"""What inputs hold besides a problem's own numbers.

Inputs of one law alone can be answered by who knows that law: nothing is negative, a product has died out, a state was
forgotten, a part tells what the whole is. So there are kinds of contents, each made of the problem's own draw. A kind
keeps what the structure of an input promises: of symmetric, triangular, diagonal and sparse matrices a number changes as
its own bits say, so that zeros stay and equal numbers stay equal; of few values stays which they are.

Which kinds a problem has is found out by running it (admission.py)."""

import math
import random
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch

OWN = "own"
PLACES = 128  # that are changed in secret, one in each part of as many
TAIL = 0.75  # sizes of outliers are u to the minus this, u uniform: one alone outweighs many others
FEW_VALUES = 16  # of an input: labels, signs
SAMPLE = 4096
CHUNK = 1 << 23  # elements that are looked at together
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
SIGN_BITS = {1: (0, 2), 2: (2, 5), 4: (9, 14), 8: (38, 43)}  # of the mantissa, that say by size which signs turn
LOW_BITS = 29  # of a double, that are zero where it was a float32


@dataclass(frozen=True)
class Traits:
    """Of one floating input, as drawn."""

    scale: float  # root mean square
    low: float
    high: float
    structured: bool  # many zeros, or symmetric
    symmetric: bool
    discrete: bool  # few values
    terms: float  # elements for each of the outputs'

    @property
    def may_be_less(self) -> bool:
        """Whether all between nothing and the largest is in its range."""
        return self.low >= 0 and self.low < 0.02 * self.high


def wide_type(x: torch.Tensor) -> torch.dtype:
    """Of a tensor, or float32 where it is of a narrower floating type: many of these have next to no arithmetic."""
    return torch.float32 if x.is_floating_point() and x.element_size() < 4 else x.dtype


def widened(x: torch.Tensor) -> torch.Tensor:
    return x.to(wide_type(x))


def traits_of(x: torch.Tensor, outputs: int) -> Traits:
    """Waits for the device. `outputs` is how many elements there are of these."""
    if not x.numel():
        return Traits(0.0, 0.0, 0.0, False, False, True, 0.0)
    x = widened(x)
    flat = x.reshape(-1)
    norm = float(torch.linalg.vector_norm(flat, dtype=torch.float64 if x.device.type == "cpu" else torch.float32))
    sample = flat[torch.randint(0, flat.numel(), (SAMPLE,), device=x.device)]
    square = x.dim() > 1 and x.shape[-1] == x.shape[-2] > 1
    symmetric = square and torch.equal(x, x.transpose(-1, -2))
    return Traits(
        norm / math.sqrt(flat.numel()),
        float(flat.min()),
        float(flat.max()),
        symmetric or float((sample == 0).float().mean()) > 0.01,
        symmetric,
        flat.numel() > FEW_VALUES and sample.float().unique().numel() <= FEW_VALUES,
        flat.numel() / max(1, outputs),
    )


# -- Changes. Each gets a contiguous tensor of its own and may write to it. What it draws on the device comes from torch's
# -- generators, what it draws here from `dice`; it does not wait for the device.


def half_turned(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, some with the other sign, as bits of each say."""
    flat = x.reshape(-1)
    high, low = SIGN_BITS[x.element_size()]
    result = torch.empty_like(flat)  # at once: parts would lie in a block that has no room for all of them then
    for at in range(0, flat.numel(), CHUNK):
        part = flat[at : at + CHUNK]
        bits = part.contiguous().view(WORDS[x.element_size()])
        turned = (((bits >> high) ^ (bits >> low)) & 1).bool()
        if x.element_size() == 1:  # which cannot be negated
            result[at : at + CHUNK] = torch.where(turned, bits ^ 0x80, bits).view(x.dtype)
        else:
            result[at : at + CHUNK] = torch.where(turned, -part, part)
    return result.reshape(x.shape)


def picked(x: torch.Tensor, share: float, dice: random.Random) -> torch.Tensor:
    """About a share of the numbers, as the bits of each say: of equal ones all or none."""
    bits = x.view(WORDS[x.element_size()])
    bits = (bits >> LOW_BITS if x.element_size() == 8 else bits).to(torch.int32)
    mixed = (bits ^ (bits >> 11)) * (dice.getrandbits(30) | 1) + dice.getrandbits(30)
    return ((mixed >> 7) & 0xFFFFF) < max(1, int(share * (1 << 20)))


def at_places(
    x: torch.Tensor,
    traits: Traits,
    dice: random.Random,
    change: Callable[[torch.Tensor], torch.Tensor],
    most: int = PLACES,
) -> torch.Tensor:
    """Changes numbers in secret places."""
    if traits.structured:
        return torch.where(picked(x, PLACES / x.numel(), dice) & (x != 0), change(x), x)  # all zeros have the same bits
    flat = x.view(-1)
    count = min(most, max(1, flat.numel() // 8))
    stretch = flat.numel() // count  # one place in each: of two numbers for one place nobody knows which stays
    places = torch.randint(0, stretch, (count,), device=x.device).add_(
        torch.arange(count, device=x.device), alpha=stretch
    )
    flat[places] = change(flat[places])
    return x


def few_signs(x, traits, dice):
    # Who looks at many numbers sees one of many, so there is one where outputs are so many that each is seen.
    return at_places(x, traits, dice, torch.neg, PLACES if traits.terms > 2 else dice.choice((1, 2)))


def outliers(x, traits, dice):
    """Large enough for each to weigh what thousands of others do, in sums and in sums of squares."""
    size = traits.scale * max(16.0, traits.terms / 16)

    def change(some: torch.Tensor) -> torch.Tensor:
        heavy = 1.0 if traits.structured else torch.rand_like(some).clamp_(min=1e-4).pow_(-TAIL)
        return torch.where(some < 0, -1.0, 1.0).to(x.dtype) * (some.abs() + heavy * size)

    return at_places(x, traits, dice, change)


def large(x, traits, dice):
    return x.mul_(2.0 ** dice.randint(3, 5))


def small(x, traits, dice):
    return x.mul_(2.0 ** -dice.randint(4, 10))


def unequal(x, traits, dice, least=-3, most=3):
    """Each place of each dimension has a scale of its own, a power of two."""
    for at, n in enumerate(x.shape):
        if n > 1:
            powers = torch.randint(least, most + 1, (n,), device=x.device).to(x.dtype)
            x.mul_(torch.exp2(powers).view([-1 if i == at else 1 for i in range(x.dim())]))
    return x


def held(x, traits, dice, scale=True):
    """One place of a dimension holds on until the end, or from the beginning, and weighs more: what opens or closes gates
    keeps them so, and what was before must still be known then."""
    dims = [i for i in range(x.dim()) if x.shape[i] >= 8 and (x.dim() < 3 or i < x.dim() - 1)]
    if not dims:
        return None
    at = max(dims, key=lambda i: x.shape[i]) if dice.random() < 0.75 else dice.choice(dims)
    n = x.shape[at]
    cut = max(1, min(n - 2, int(n * (0.03 + 0.9 * dice.random() ** 2))))
    index = torch.arange(n, device=x.device)
    from_start = dice.random() < 0.15
    index = index.clamp(min=cut) if from_start else index.clamp(max=cut)
    weights = torch.ones(n, dtype=x.dtype, device=x.device)
    if scale:
        (weights[:cut] if from_start else weights[cut:]).fill_(2.0 ** dice.randint(4, 7))
    return x.index_select(at, index).mul_(weights.view([-1 if i == at else 1 for i in range(x.dim())]))


def grown(
    x: torch.Tensor, dice: random.Random, longest: float, powers_of: Callable[[torch.Tensor], torch.Tensor]
) -> Optional[torch.Tensor]:
    """Larger along one dimension, with the chance `longest` that one, and mostly away from its end, by powers of two of how many steps
    away: 2^50 at most."""
    dims = [i for i in range(x.dim()) if x.shape[i] >= 8]
    if not dims:
        return None
    at = max(dims, key=lambda i: x.shape[i]) if dice.random() < longest else dice.choice(dims)
    powers = powers_of(torch.arange(x.shape[at], dtype=torch.float32, device=x.device)).clamp_(max=50)
    powers = powers.flip(0) if dice.random() < 0.8 else powers
    return x.mul_(torch.exp2(powers).to(x.dtype).view([-1 if i == at else 1 for i in range(x.dim())]))


def steep(x, traits, dice):
    """By the same factor from step to step: what is weighed by next to nothing is seen, where weights fall about as fast."""
    return grown(x, dice, 0.75, lambda steps: steps.mul_(0.15 * 8 ** dice.random()))


def far(x, traits, dice):
    """With the eighth power of the distance from some place on: what is weighed by 10^-10 is seen however slowly weights fall."""
    return grown(
        x, dice, 0.75, lambda steps: steps.div_((len(steps) / 16) ** dice.random()).clamp_(min=1).log2_().mul_(8)
    )


def partly(x, traits, dice):
    """Rows up to one place, or from there on, are one number each: no part of the rows is like the whole."""
    if x.dim() < 2 or x.shape[0] < 8 or x[0].numel() < 2:
        return None
    n = x.shape[0]
    cut = dice.randint(n // 8, n // 2)
    rows = x.view(n, -1)
    some = rows[:cut] if dice.random() < 0.5 else rows[n - cut :]
    some.copy_(some[:, :1].clone().expand(some.shape))
    return x


def near_one(x, traits, dice):
    """Products of as many as the longest dimension has stay what can be told from nothing."""
    spread = max(traits.high - traits.low, 1e-30)
    width = 2.0 / math.sqrt(max(x.shape, default=1))
    return x.sub_((traits.high + traits.low) / 2).mul_(width / spread).add_(1.0)


def sparse(x, traits, dice):
    flat = x.view(-1)
    for at in range(0, flat.numel(), CHUNK):
        flat[at : at + CHUNK].masked_fill_(picked(flat[at : at + CHUNK], 7 / 8, dice), 0.0)
    return x


def rising(x, traits, dice):
    """Each row rises or falls."""
    n = x.shape[-1] if x.dim() else 1
    if n < 8:
        return None
    spread = traits.high - traits.low
    ramp = torch.arange(n, dtype=torch.float32, device=x.device).mul_(spread / n).add_(traits.low)
    ramp = ramp.flip(0) if dice.random() < 0.5 else ramp
    return x.sub_(traits.low).mul_(1.0 / n).add_(ramp.to(x.dtype))


def constant(x, traits, dice):
    """Each row is one number."""
    if not x.dim() or x.shape[-1] < 2:
        return None
    return x[..., :1].expand(x.shape).contiguous()


def repeated(x, traits, dice):
    """A quarter of the rows stand where all did."""
    if x.dim() < 2 or x.shape[0] < 4:
        return None
    return x.index_select(0, torch.randint(0, x.shape[0] // 4, (x.shape[0],), device=x.device))


def lessened(x, traits, dice):
    """Rows of unequal scales within the range."""
    return unequal(x, traits, dice, -4, 0) if traits.may_be_less else None


def extremes(x, traits, dice):
    """The ends of the range in secret places."""
    return at_places(x, traits, dice, lambda some: torch.full_like(some, dice.choice((traits.low, traits.high))))


@dataclass(frozen=True)
class Kind:
    name: str
    words: str  # of trials
    change: Optional[Callable]  # None: as it is drawn
    keeps_structure: bool = False  # zeros and equal numbers
    keeps_range: bool = False
    largest_alone: bool = False  # of the inputs
    is_even: bool = False  # terms of one size that differ: what their sums lose is known well
    is_alike: bool = False  # terms, or sums of some, are nearly equal, and rounded alike
    comes_first: bool = False
    has_ties: bool = False  # so that which is the largest may be said in several ways
    is_unlike: bool = False  # draws differ in scale, by up to 2^50
    draws: int = 1  # in trials, of a kind that shows in a part of its draws only what it is for


# A problem that is slow to run has those alone that come first.
KINDS = {
    x.name: x
    for x in (
        Kind(OWN, "the problem's own", None, True, True, is_even=True),
        Kind("signs", "half of the signs turned", lambda x, *_: half_turned(x), True, is_even=True),
        Kind("outliers", "outliers in a few places", outliers, True, comes_first=True),
        Kind("few_signs", "signs turned in a few places", few_signs, True, is_even=True, comes_first=True),
        Kind(
            "held",
            "the same from one place on, and larger",
            held,
            largest_alone=True,
            is_alike=True,
            comes_first=True,
            has_ties=True,
        ),
        Kind(
            "partly",
            "rows of one number up to one place",
            partly,
            keeps_range=True,
            is_alike=True,
            comes_first=True,
            has_ties=True,
        ),
        Kind("steep", "larger from step to step", steep, comes_first=True, is_unlike=True, draws=3),
        Kind("far", "larger with the distance", far, comes_first=True, is_unlike=True, draws=3),
        Kind("unequal", "scales that differ from row to row", unequal, comes_first=True),
        Kind("large", "larger", large, True, is_even=True, comes_first=True),
        Kind("near_one", "near one", near_one, is_alike=True, comes_first=True),
        Kind("lessened", "rows that are smaller", lessened, keeps_range=True, comes_first=True),
        Kind("extremes", "ends of the range in a few places", extremes, keeps_range=True, has_ties=True),
        Kind("small", "smaller", small, True, is_even=True),
        Kind("sparse", "mostly zeros", sparse, True, has_ties=True),
        Kind("rising", "rows in order", rising, keeps_range=True, is_alike=True),
        Kind("repeated", "equal rows", repeated, keeps_range=True, is_alike=True, has_ties=True),
        Kind("constant", "rows of one number", constant, keeps_range=True, is_alike=True, has_ties=True),
    )
}


def copied(x: torch.Tensor) -> torch.Tensor:
    """A contiguous copy of at least one dimension, in a type that has arithmetic."""
    wide = widened(x)
    return (x.clone(memory_format=torch.contiguous_format) if wide is x else wide.contiguous()).reshape(x.shape or (1,))


def in_turn(others: list[str], dice: random.Random) -> list[str]:
    """Kinds in an order that nobody knows, those first that shortcuts fail on most."""
    result = list(others)
    dice.shuffle(result)
    return sorted(result, key=lambda x: not KINDS[x].comes_first)


def of_kind(inputs: list[Any], kind: str, law: int, traits: list[Optional[Traits]]) -> Optional[list[Any]]:
    """Contents of a kind made of a draw; None where no input can change. The generators are where the draw left them. Its law,
    such as how much larger and from which place on, is that of a seed; which numbers lie where is the draw's."""
    what = KINDS[kind]
    if what.change is None:
        return inputs
    result, changed = list(inputs), False
    sizes = [x.numel() if t is not None else 0 for x, t in zip(inputs, traits)]
    for i, (x, t) in enumerate(zip(inputs, traits)):
        if t is None or t.structured and not what.keeps_structure or what.largest_alone and sizes[i] < max(sizes):
            continue
        if t.discrete and kind != "signs":
            continue
        made = (
            what.change(x.contiguous() if x.dim() else x.reshape(1), t, random.Random(f"{law}:{kind}:{i}"))
            if kind == "signs"
            else what.change(
                copied(x),
                t,
                random.Random(f"{law}:{kind}:{i}"),
            )
        )
        if made is not None:
            result[i] = made.reshape(x.shape).to(x.dtype)
            changed = True
    return result if changed else None
