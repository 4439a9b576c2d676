"""Which kinds of contents a problem has, and what its own arithmetic loses on each."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional, Sequence

import torch

from kernelmill_torch import contents
from kernelmill_torch.candidate import seed_everything
from kernelmill_torch.contents import KINDS, OWN, wide_type
from kernelmill_torch.faults import lacks_memory
from kernelmill_torch.problem import (
    OUT_OF_MEMORY,
    Flips,
    Problem,
    Truth,
    are_finite,
    chunks,
    relative_error,
    root_mean_square,
)
from kernelmill_torch.roundings import runs_with_roundings

SEEDS = (17, 18)
MOVES_SEED = 1836021349  # nobody draws contents by it: what moves them is to be no part of them
TOO_LARGE = "too large"  # for the memory that is there
STEP = 2.0**-20  # relative, by which inputs are moved to see what becomes of it, in double precision
COARSE_STEP = 2.0**-8  # in the problem's own
COARSE_MOVES = 3  # so often, for one may change one output by next to nothing
MOST_COPIED = 1 << 30  # bytes of inputs
MOST_GAIN = 32.0  # of that; where it is more, honest orders of the arithmetic differ by too much
MOST_ROUNDINGS = (
    2.0**-6
)  # relative, of what is rounded on the way: no more than was allowed where that was not looked at
MOST_LEVEL = 1e-3  # relative; the problem's own precision may be off by so much
SMALL_OUTPUT = 64  # elements, whose size a draw may have near zero by chance
MOST_OUTPUT = 1 << 27  # elements; of more there is no time to see what becomes of small changes
SECONDS = {"cuda": 4.0, "cpu": 3.0}
MOST_SECONDS = {"cuda": 40.0, "cpu": 60.0}  # also for kinds that come first: somebody waits for a verdict
ROUNDING = 2.0**-24
LARGEST_FLOOR = 2.0**-15  # compare.FLOOR of float32
LEAST_FLOOR = 2.0**-19
LEAST_FLOOR_OF_WEIGHTS = 2.0**-17  # less than that, sums of products of halves that are split would be wrong
LEVELS = 4.0  # times what torch's own arithmetic loses, which another order may; compare.ALLOWANCE comes on top
MOST_TERMS = 2.0**20
ALIKE = 8.0  # times as much at most, of sums of very many terms that are alike
LEAST_TERMS = 64  # of a sum
SAME = 1e-3  # relative: what runs on the same inputs may differ by


@dataclass
class Gauge:
    """Of one kind, an entry an output."""

    kind: str
    level: list[float] = field(default_factory=list)  # how far the problem's own precision is off; see Truth
    gain: list[float] = field(
        default_factory=list
    )  # relative change of the output for one of each element of the inputs
    shift: list[float] = field(default_factory=list)  # that change itself, for outputs of a few elements
    is_random: bool = False  # outputs are other ones each time
    has_gain: bool = True  # else it was not measured
    flips: list[Flips] = field(default_factory=list)  # of a model that rounds on its way


@dataclass
class Admitted:
    """The kinds that a problem has, its own first."""

    gauges: dict[str, Gauge]
    refused: dict[str, str]  # why, by kind
    untried: list[str]  # there was no time for them
    is_crowded: bool = False  # less memory was there than is in use while somebody is judged
    full: int = 0  # bytes of a GPU that are in use then at most, the look at the problem's own contents with them

    @property
    def names(self) -> list[str]:
        return list(self.gauges)

    @property
    def others(self) -> list[str]:
        return [x for x in self.gauges if x != OWN]

    def notes(self) -> list[str]:
        result = (
            ["hidden contents: " + ", ".join(KINDS[x].words for x in self.others)]
            if self.others
            else ["no other finite contents: hidden trials and timed calls have the problem's own"]
        )
        if self.untried:
            result.append("too slow to try contents " + ", ".join(self.untried))
        return result


def admit(problem: Problem, device: str, beside: int = 0) -> Admitted:
    """Runs every kind twice. `beside`: bytes that are in use while somebody is judged, so that double precision, or a kind, which
    would not fit then is too large. REQUIRES: the problem's models are built."""
    started = time.monotonic()
    result = Admitted({}, {}, [])
    held = memory_held(beside, device)
    if (own := measured_own(problem, device)) is None and held is not None:
        held = None
        own = measured_own(problem, device)
    if own is None:
        raise MemoryError("its own contents do not fit")
    result.gauges[OWN] = own
    result.is_crowded = device == "cuda" and beside > 0 and held is None
    if device == "cuda":
        result.full = torch.cuda.max_memory_allocated() + (beside if held is None else 0)
    domain = problem.has_checked_domain()
    products = False  # whether larger inputs have no finite answer
    for kind in KINDS.values():
        if kind.name == OWN:
            continue
        if domain and not kind.keeps_range:
            result.refused[kind.name] = "might leave the domain"
        elif not domain and kind.name in ("lessened", "extremes"):
            continue  # there are stronger ones
        elif (
            time.monotonic() - started > (MOST_SECONDS if kind.comes_first or kind.name == "signs" else SECONDS)[device]
        ):
            result.untried.append(kind.name)
        else:
            why = try_kind(problem, kind, products, result)
            products = products or kind.name == "large" and why == "not finite"
            if why:
                result.refused[kind.name] = why
    del held
    return result


def measured_own(problem: Problem, device: str) -> Optional[Gauge]:
    """Of the problem's own contents, without double precision where that does not fit; None where they themselves do not."""
    for _ in range(2):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        try:
            return measured(problem, OWN) or Gauge(OWN)
        except OUT_OF_MEMORY:
            pass
        if not problem.exact:
            break
        problem.forget_exact(is_short=True)
    return None


def memory_held(size: int, device: str) -> Optional[torch.Tensor]:
    """So many bytes of a GPU, or nothing where they are not there: then nothing else is known better, either."""
    if device != "cuda" or not size:
        return None
    try:
        return torch.empty(size, dtype=torch.uint8, device=device)
    except OUT_OF_MEMORY:
        return None


def spare_bytes(device: str) -> int:
    """Of memory that torch keeps here and nobody uses."""
    return torch.cuda.memory_reserved() - torch.cuda.memory_allocated() if device == "cuda" else 0


def give_back(device: str) -> None:
    """What torch has spare, where that is much: a block of which a part is in use later cannot be given back then."""
    if spare_bytes(device) > MOST_COPIED:
        torch.cuda.empty_cache()


def try_kind(problem: Problem, kind: contents.Kind, products: bool, result: Admitted) -> str:
    """Adds a kind that the problem has; else why not."""
    give_back(problem.device)
    try:
        first = problem.draw_other(SEEDS[0], kind.name)
        if first is None:
            return "no input can be changed so"
        if not all(are_finite(problem.run(x)) for x in (first, problem.draw_other(SEEDS[1], kind.name))):
            return "not finite"
        del first
        give_back(problem.device)
        gauge = measured(problem, kind.name)
    except Exception as e:
        if lacks_memory(e):
            return TOO_LARGE
        if "device-side assert" in str(e) or "illegal memory" in str(e):
            raise
        return "the model fails"
    if gauge is None:
        return "not finite"
    if kind.has_ties and problem.has_integer_outputs:
        return "ties"
    if kind.is_alike and not kind.comes_first and not gauge.has_gain:
        return "cannot tell what it loses"
    own = result.gauges[OWN]
    for level, gain, usual, usual_gain in zip(gauge.level, gauge.gain, own.level, own.gain):
        if level > max(MOST_LEVEL, 8 * usual):
            return f"ill-conditioned: off by {level:.1e}"
        if gain > max(MOST_GAIN, 2 * usual_gain) and not (kind.name == "near_one" and products):
            return f"ill-conditioned: a small change grows by {gain:.0f}"
    result.gauges[kind.name] = gauge
    return ""


def floor_of(
    terms: float, gauge: Gauge, output: int, is_plain: bool, dense_terms: float = 0.0, level: float = 0.0
) -> float:
    """What honest float32 arithmetic loses at least, relative to an output.

    A sum of n terms of one size, rounded n times, is off by some sqrt(n) roundings, whatever its order. Who adds terms that
    are alike, or small ones to a large one, rounds the same way each time and loses more, of alike ones the more the more
    partial sums there are. `is_plain`: outputs are made of inputs alone, each once. `dense_terms`: of the longest sum of
    products with parameters; signs of these differ, so that none are alike. What torch itself loses, `level`, tells of deep ones."""
    kind = KINDS[gauge.kind]
    floor = LARGEST_FLOOR
    if is_plain and terms >= LEAST_TERMS:
        of_terms = LARGEST_FLOOR * math.sqrt(terms / MOST_TERMS)
        if kind.is_even:
            floor = min(max(LEAST_FLOOR, of_terms), LARGEST_FLOOR)
        elif kind.is_alike:
            floor = min(max(LARGEST_FLOOR, of_terms), ALIKE * LARGEST_FLOOR)
    elif dense_terms and kind.is_even:
        of_terms = LARGEST_FLOOR * math.sqrt(dense_terms / MOST_TERMS)
        floor = min(max(LEVELS * level, of_terms, LEAST_FLOOR_OF_WEIGHTS), LARGEST_FLOOR)
    gain = min(MOST_GAIN, gauge.gain[output]) if gauge.kind != OWN and gauge.gain else 0.0
    return max(floor, gain * gain * ROUNDING)


def refine(truth: Truth, gauge: Gauge, problem: Problem, is_plain: bool, shifts: Sequence[float] = ()) -> None:
    """Adds what is known of a kind of contents: floors, and for outputs of a few elements, which may be near zero by chance,
    how large they are otherwise: on these very contents, where `shifts` say that, else on others of the kind."""
    terms = sum(t.terms for t in problem.traits() if t is not None)
    dense_terms = problem.dense_terms if truth.is_exact else 0.0  # else nobody knows what torch's own arithmetic loses
    if gauge.flips:  # a draw's own level knows nothing of what is rounded on the way
        truth.level = [max(x, min(y, MOST_ROUNDINGS)) for x, y in zip(truth.level, gauge.level)]
        truth.flips = gauge.flips
    truth.floor = [floor_of(terms, gauge, i, is_plain, dense_terms, level) for i, level in enumerate(truth.level)]
    if gauge.kind != OWN:
        truth.gain = [min(MOST_GAIN, x) for x in gauge.gain]
    if gauge.shift:
        truth.spread = [max(x, shift) for x, shift in zip(truth.spread, shifts or gauge.shift)]


def has_scale_of_its_own(inputs: list[Any], gauge: Gauge) -> bool:
    """Whether the scale of outputs of a few elements hangs on the draw. Inputs that nobody should copy beside a candidate have the gauge's."""
    return KINDS[gauge.kind].is_unlike and any(gauge.shift) and may_be_copied(inputs)


def may_be_copied(inputs: list[Any]) -> bool:
    return sum(x.numel() * x.element_size() for x in inputs if isinstance(x, torch.Tensor)) <= MOST_COPIED


def runs_moved(inputs: list[Any], problem: Problem, step: float, times: int) -> Iterator[list[torch.Tensor]]:
    """The model's outputs in its own precision on copies of inputs, then so often on copies that are moved."""
    for seed, much in enumerate([0.0] + times * [step]):
        copies = moved(inputs, much, problem, problem.dtype, seed)
        seed_everything(SEEDS[0])
        yield problem.run(copies)


def shifts_of(inputs: list[Any], problem: Problem) -> list[float]:
    """As Gauge.shift, of these contents, whose copies are changed. REQUIRES: has_scale_of_its_own()."""
    result = []
    for x, *others in zip(*runs_moved(inputs, problem, COARSE_STEP, COARSE_MOVES)):
        is_few = x.is_floating_point() and x.numel() <= SMALL_OUTPUT
        result.append(root_mean_square(torch.stack(others).double() - x.double()) / COARSE_STEP if is_few else 0.0)
    return result


def measured(problem: Problem, kind: str) -> Optional[Gauge]:
    """What the arithmetic loses on one draw; None where the answer is not finite."""
    result = Gauge(kind)
    inputs = problem.draw(SEEDS[0], kind)
    if kind != OWN and not problem.is_random:
        seed_everything(SEEDS[0])
        result.is_random = differ(problem.run(inputs), problem.run(inputs))
    seed_everything(SEEDS[0])
    # Which draws other random numbers, and takes so much memory that nothing else is held meanwhile.
    exact = None if result.is_random else problem.run_exact(inputs)
    seed_everything(SEEDS[0])
    plain = problem.run(inputs)
    if exact is None and problem.exact and not result.is_random and kind != OWN:
        raise ValueError("the model fails in double precision")
    if exact is None:
        zeros = [0.0] * len(plain)
        result = Gauge(kind, list(zeros), zeros, zeros, result.is_random, False)
        add_roundings(problem, inputs, plain, result)
        return result
    if kind != OWN and not are_finite(exact):
        return None
    spreads = [root_mean_square(x) if x.is_floating_point() else 0.0 for x in exact]
    result.level = [relative_error(a, b, s) if b.is_floating_point() else 0.0 for a, b, s in zip(plain, exact, spreads)]
    add_roundings(problem, inputs, plain, result)
    del plain
    if sum(x.numel() for x in exact) > MOST_OUTPUT:
        result.gain = result.shift = [0.0] * len(exact)
        result.has_gain = False
        return result
    inputs = moved(problem.draw(SEEDS[0], kind), STEP, problem, torch.float64)
    seed_everything(SEEDS[0])
    for x, y, s in zip(exact, problem.run_exact(inputs) or exact, spreads):
        shift = root_mean_square(y.double() - x.double()) / STEP if x.is_floating_point() else 0.0
        result.gain.append(shift / max(s, 1e-300) if x.numel() > SMALL_OUTPUT else 0.0)
        result.shift.append(shift if x.numel() <= SMALL_OUTPUT else 0.0)
    return result


def add_roundings(problem: Problem, inputs: list[Any], plain: list[torch.Tensor], to: Gauge) -> None:
    """What outputs differ by where the model rounds on its way and that falls otherwise."""
    if not problem.rounds or to.is_random:
        return
    to.flips = [Flips() for _ in plain]
    for outputs in runs_with_roundings(problem, inputs, SEEDS[0]):
        for i, (x, y, known) in enumerate(zip(outputs, plain, to.flips)):
            is_wide = y.is_floating_point() and y.element_size() > 1
            least = max(root_mean_square(y), 1e-300) if is_wide else 1.0
            last = (
                torch.finfo(y.dtype).eps if is_wide else 0.0
            )  # rounding of the output itself, of which its floor knows
            count = 0
            for a, b in chunks(x, y):
                b = b.double()
                off = (a.double() - b).abs_().nan_to_num_(0.0, 0.0, 0.0)
                count += int((off > 0).sum())
                known.size = max(known.size, float(off.max()) if off.numel() else 0.0)
                if is_wide and off.numel():
                    off = off.sub_(b.abs(), alpha=last).div_(b.abs().add_(least))
                    to.level[i] = max(to.level[i], float(off.max()))
            known.share = max(known.share, count / max(1, y.numel()))


def moved(inputs: list[Any], step: float, problem: Problem, dtype: Optional[torch.dtype], seed: int = 0) -> list[Any]:
    """Copies in a type, or each in its own, each number a little larger or smaller; where others than its own might end the process, within the range of its tensor."""
    result = [
        x.to(dtype or wide_type(x), copy=True) if isinstance(x, torch.Tensor) and x.is_floating_point() else x
        for x in inputs
    ]
    keeps_range = problem.has_checked_domain()
    seed_everything(MOVES_SEED + seed)
    for i, x in enumerate(result):
        if x is not inputs[i]:
            result[i] = x = x.contiguous()
            ends = (x.min(), x.max()) if keeps_range and x.numel() else (None, None)
            for (part,) in chunks(x):
                part.mul_(torch.randn_like(part).mul_(step).add_(1.0))
                if keeps_range:
                    part.clamp_(*ends)
            result[i] = x.to(dtype or inputs[i].dtype)
    return result


def differ(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    floating = [(x, y, root_mean_square(y)) for x, y in zip(a, b) if x.is_floating_point()]
    return any(
        relative_error(part, other.double(), spread) > SAME for x, y, spread in floating for part, other in chunks(x, y)
    )
