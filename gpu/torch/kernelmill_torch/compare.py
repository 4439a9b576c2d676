"""Whether outputs are right, explicitly: every element, non-finite ones by kind, integers exactly."""

import math
from dataclasses import dataclass, replace
from typing import Any, Iterable, Optional, Sequence

import torch

from kernelmill_torch.problem import Flips, Truth, chunks, root_mean_squares

# In honest mode an element may be off by ALLOWANCE times the larger of: how far the problem's own precision is off,
# and what honest arithmetic of that type loses in sums in any order, which for sums of fewer than a million terms
# admission.floor_of() knows better. Relative to |want| plus the root mean square of the output.
ALLOWANCE = 4.0
FLOAT32_FLOOR = {"fp32": 2.0**-15, "tf32": 2.0**-10}
# Of other types: what rounding a number loses at most, and what is allowed where the model itself loses less. ALLOWANCE times the second
# covers sums in any order, and a rounding or two in between, and none to a type that is one step narrower.
ROUNDING_AND_FLOOR = {
    getattr(torch, name): (rounding, floor)
    for name, rounding, floor in (
        ("float64", 2.0**-53, 2.0**-44),
        ("float16", 2.0**-11, 2.0**-12),
        ("bfloat16", 2.0**-9, 2.0**-8),
        ("float8_e4m3fn", 2.0**-4, 2.0**-5),
        ("float8_e4m3fnuz", 2.0**-4, 2.0**-5),
        ("float8_e5m2", 2.0**-3, 2.0**-4),
        ("float8_e5m2fnuz", 2.0**-3, 2.0**-4),
    )
    if hasattr(torch, name)
}
# Times the floor: where double precision does not say what the model loses, and on other contents than the problem's own, where sums
# cancel that do not there, so that a rounding of their parts shows. Those are for work that was left out.
COARSE = 4.0
MOST_FLOOR = 2.0**-5  # that a kind of contents makes of it by how much small changes grow there
# Elements of 8 bits, or integers, that may be rounded otherwise.
LEAST_FLIPS, MOST_FLIPS = 0.01, 0.25
SAME_IN_8_BITS = 2.0**-10  # relative
MORE_THAN_ANY_BOUND = 1e300
MOST_RELATIVE = 1e4  # of a rule, that torch takes as a factor of every type
SAMPLE_BITS = 18  # of the places that are looked at before a whole output is


@dataclass
class Rule:
    """How far an element may be off: |got - want| <= absolute + relative * |want|."""

    absolute: float
    relative: float


@dataclass
class SharedRule(Rule):
    """One that a share of an output's elements must keep: of a problem's suite, or where roundings may fall otherwise. Integers are
    numbers, too."""

    matched: float = 1.0  # least share of an output's elements within the bound
    outer: Optional[Rule] = None  # that all elements keep

    def allows(self, bad: float, beyond: float, count: int) -> bool:
        """Whether an output may have so many elements out of the bound, and out of the outer one."""
        return not beyond and 1.0 - bad / max(1, count) >= self.matched


@dataclass
class Difference:
    """What one comparison found; `max_error` and `bound` are those of the worst element."""

    bad: int = 0
    max_error: float = 0.0
    bound: float = 0.0
    first_bad: str = ""
    exceeding: float = 0.0  # the largest error in units of its bound

    def worse_of(self, other: "Difference") -> "Difference":
        first = self if self.bad or not other.bad else other
        worst = self if self.exceeding >= other.exceeding else other
        return Difference(self.bad + other.bad, worst.max_error, worst.bound, first.first_bad, worst.exceeding)


def floor_of(truth: Truth, output: int, float32: str) -> float:
    """What honest arithmetic of an output's own type loses at least."""
    dtype = truth.types[output] if truth.types else torch.float32
    if dtype == torch.float32 or not dtype.is_floating_point:
        return truth.floor[output] if float32 == "fp32" and truth.floor else FLOAT32_FLOOR[float32]
    rounding, floor = ROUNDING_AND_FLOOR[dtype]
    if (truth.is_exact or truth.flips) and not truth.gain:
        return floor
    gain = truth.gain[output] if truth.gain else 0.0
    return max(COARSE * floor, min(MOST_FLOOR, gain * gain * rounding))


def honest_rules(truth: Truth, float32: str, timed: bool) -> list[Rule]:
    """The rules of honest mode, of each output by its own type. A `timed` output is compared with the problem's own precision,
    which is itself off by one level more."""
    result = []
    for i, (level, spread) in enumerate(zip(truth.level, truth.spread)):
        floor = floor_of(truth, i, float32)
        allowed = ALLOWANCE * max(level, floor) + (level if timed else 0.0)
        rule = Rule(allowed * spread, allowed)
        result.append(rounded_rule(rule, truth.types[i], truth.flips[i]) if truth.flips else rule)
    return result


def rounded_rule(rule: Rule, dtype: torch.dtype, flips: Flips) -> Rule:
    """Of an output of numbers of 8 bits, or integers, most elements must be the same: roundings fall otherwise in a share of them that
    is known. Other floating outputs keep their rule."""
    share = min(MOST_FLIPS, ALLOWANCE * flips.share)
    if not dtype.is_floating_point:
        return SharedRule(0.0, 0.0, 1.0 - share, Rule(flips.size, 0.0)) if flips.share else rule
    if torch.empty((), dtype=dtype).element_size() > 1:
        return rule
    return SharedRule(0.0, SAME_IN_8_BITS, 1.0 - max(LEAST_FLIPS, share), rule)


def at_own_scale(rules: list[Rule], wanted: list[torch.Tensor], few: int, shifts: Sequence[float] = ()) -> list[Rule]:
    """The rules of honest mode for another draw of the same kind, whose outputs may be of another scale. Outputs of a `few`
    elements may be near zero by chance: of these not less is allowed than where they have the size that `shifts` say, or without
    these the one that they have in the draw that the rules are of."""
    if shifts:
        least = [outer_of(rule).relative * x for rule, x in zip(rules, shifts)]
    else:
        least = [outer_of(rule).absolute if want.numel() <= few else 0.0 for rule, want in zip(rules, wanted)]
    return [
        at_scale(rule, max(outer_of(rule).relative * size, floor))
        for rule, size, floor in zip(rules, root_mean_squares(wanted), least)
    ]


def outer_of(rule: Rule) -> Rule:
    """The rule that all elements keep."""
    return rule.outer if isinstance(rule, SharedRule) and rule.outer is not None else rule


def at_scale(rule: Rule, absolute: float) -> Rule:
    """One of honest mode with another part that hangs on the scale of an output."""
    if not isinstance(rule, SharedRule):
        return Rule(absolute, rule.relative)
    outer = rule.outer
    return replace(rule, outer=Rule(absolute, outer.relative)) if outer is not None and outer.relative else rule


def benchmark_rules(truth: Truth) -> list[Rule]:
    """KernelBench's: torch.allclose with atol = rtol."""
    types = truth.types or [torch.float32] * len(truth.level)
    return [Rule(*[1e-4 if x in (torch.float32, torch.float64) else 1e-2] * 2) for x in types]


def suite_rules(count: int, tolerance: dict[str, Any]) -> list[Rule]:
    """Those of so many outputs; a task's tolerance as gpu/torch/shape_evaluation.cpp tells it."""
    told = (float(tolerance[x]) for x in ("absolute", "relative", "matched"))
    largest = tolerance.get("largest")
    return [SharedRule(*told, Rule(float(largest), 0.0) if largest else None)] * count


def excess(got: torch.Tensor, want: torch.Tensor, rule: Rule) -> torch.Tensor:
    """The largest error in units of its bound, on the device. Not finite where something is not: then only judge()
    knows. Many times cheaper than it, and nearly every answer that is timed is right."""
    result = torch.zeros((), dtype=torch.float64, device=want.device)
    for a, b in chunks(got, want):
        if not b.numel():
            continue
        if not b.is_floating_point():
            largest = (a != b).any() * 2.0
        else:
            off = (a.to(b.dtype) - b).abs_()
            largest = off.div_(b.abs().mul_(rule.relative).add_(rule.absolute).clamp_(min=1e-38)).max()
        result = torch.maximum(result, largest.double())
    return result


def judge(got: torch.Tensor, want: torch.Tensor, rule: Rule) -> tuple[float, float]:
    """How many elements are bad, and the largest error in units of its bound. Of a shared rule there are none where it allows them."""
    if isinstance(rule, SharedRule):
        return judge_by_share(got, want, rule)
    largest = float(excess(got, want, rule))
    if largest <= 1:
        return 0.0, largest
    result = torch.zeros(2, dtype=torch.float64, device=want.device)
    for a, b in chunks(got, want):
        bad, ratio = judge_part(a, b, rule)
        result[0] += bad.sum()
        if ratio.numel():
            result[1] = torch.maximum(result[1], ratio.max())
    bad, largest = result.tolist()
    return bad, largest


def judge_by_share(got: torch.Tensor, want: torch.Tensor, rule: SharedRule) -> tuple[float, float]:
    """As judge(). A share may be off: by numbers, for what is not written is often no number, and no suite takes that."""
    result = torch.zeros(3, dtype=torch.float64, device=want.device)
    for a, b in chunks(got, want):
        bad, ratio = judge_part(a, b, rule)
        result[0] += bad.sum()
        if not ratio.numel():
            continue
        result[1] = torch.maximum(result[1], ratio.max().double())
        result[2] += (bad & ~torch.isfinite(a.double())).sum()
        if rule.outer is not None:
            result[2] += judge_part(a.double(), b.double(), rule.outer)[0].sum()
    bad, largest, beyond = result.tolist()
    return (0.0 if rule.allows(bad, beyond, want.numel()) else max(bad, beyond)), largest


def share_off(pairs: Iterable[tuple[torch.Tensor, torch.Tensor, Rule]]) -> float:
    """The largest share of an output's elements that are off where a rule lets a share be."""
    result = 0.0
    for got, want, rule in pairs:
        if isinstance(rule, SharedRule) and rule.matched < 1 and want.numel():
            bad = sum(judge_part(a, b, rule)[0].sum() for a, b in chunks(got, want))
            result = max(result, float(bad) / want.numel())
    return result


def largest_beyond(got: torch.Tensor, want: torch.Tensor, relative: float) -> torch.Tensor:
    """The largest error less a share of what is wanted, on the device: two thirds of the memory's work of excess(). Not finite where
    something is not, nor for a rule by which nearly all is right."""
    result = torch.zeros((), dtype=torch.float64, device=want.device)
    if not relative < MOST_RELATIVE:
        return result + math.inf
    for a, b in chunks(got, want):
        if not b.numel():
            continue
        if b.is_floating_point():
            largest = (a.to(b.dtype) - b).abs_().sub_(b.abs(), alpha=relative).max().double()
        else:
            largest = (a != b).any().double() * MORE_THAN_ANY_BOUND
        result = torch.maximum(result, largest)
    return result


def count_bad(pairs: list[tuple[torch.Tensor, torch.Tensor, Rule]]) -> float:
    """How many elements of several outputs are bad; each pair holds what was got and what was wanted."""
    shared = [x for x in pairs if isinstance(x[2], SharedRule)]
    if shared:
        return sum(judge(*x)[0] for x in shared) + count_bad([x for x in pairs if not isinstance(x[2], SharedRule)])
    if not pairs:
        return 0.0
    largest = torch.stack([largest_beyond(got, want, rule.relative) for got, want, rule in pairs]).tolist()
    return sum(judge(*x)[0] for x, off in zip(pairs, largest) if not off <= x[2].absolute or off == math.inf)


def would_pass(got: Optional[torch.Tensor], want: torch.Tensor, rule: Rule) -> bool:
    """Whether an output has no bad element; without one, whether zeros would have none. Looks at some places first."""
    steps = (max(1, want.numel() >> SAMPLE_BITS), 1)
    for step in steps[1:] if isinstance(rule, SharedRule) else steps:
        right = want.reshape(-1)[::step]
        if judge(torch.zeros_like(right) if got is None else got.reshape(-1)[::step], right, rule)[0]:
            return False
    return True


def judge_part(a: torch.Tensor, b: torch.Tensor, rule: Rule) -> tuple[torch.Tensor, torch.Tensor]:
    """Which elements of one part are bad, and each error in units of its bound (infinite where not finite)."""
    if not b.is_floating_point():
        if not isinstance(rule, SharedRule):
            bad = a != b
            return bad, bad.double()
        b = b.double()
    a = a.to(b.dtype)
    ratio = (a - b).abs() / (rule.absolute + rule.relative * b.abs()).clamp(min=1e-38)
    # Equal infinities are equal; NaN is right only where it is wanted.
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    ratio = torch.where(same, torch.zeros_like(ratio), ratio)
    ratio = torch.where(torch.isnan(ratio), torch.full_like(ratio, float("inf")), ratio)
    return ratio > 1, ratio


def explain(got: torch.Tensor, want: torch.Tensor, rule: Rule, name: str) -> Difference:
    """The words for an output that judge() found bad. Costs as much again."""
    result = Difference()
    start = 0
    for a, b in chunks(got, want):
        bad, ratio = judge_part(a, b, rule)
        result.bad += int(bad.sum())
        if a.numel() and float(ratio.max()) >= result.exceeding:
            worst = int(ratio.argmax())
            result.exceeding = float(ratio[worst])
            result.max_error = abs(float(a[worst]) - float(b[worst]))
            result.bound = rule.absolute + rule.relative * abs(float(b[worst]))
        if not result.first_bad and bool(bad.any()):
            at = int(bad.to(torch.uint8).argmax())
            bound = rule.absolute + rule.relative * abs(float(b[at]))
            where = list(torch_index(start + at, want.shape))
            share = f", for {rule.matched:.4g} of all" if isinstance(rule, SharedRule) and rule.matched < 1 else ""
            result.first_bad = f"{name}{where}: got {float(a[at]):g}, want {float(b[at]):g} (bound {bound:.3g}{share})"
        start += a.numel()
    return result


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same bits; NaN counts as itself."""
    return torch.equal(*words_of(a, b))


def words_of(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors as integers."""
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if a.dtype == torch.bool:
        return a, b
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    if a.stride() != b.stride() or a.dim() == 0:
        a, b = a.contiguous().reshape(-1), b.contiguous().reshape(-1)
    return a.view(words), b.view(words)


def differing(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[bool]:
    """Of each pair whether it holds other bits, as of same_bytes(); waits for the device once."""
    flags = [(a != b).any() for a, b in (words_of(*x) for x in pairs)]
    return torch.stack(flags).tolist() if flags else []


def torch_index(flat: int, shape: torch.Size) -> tuple[int, ...]:
    """The index of the element at a flat position."""
    result = []
    for n in reversed(shape):
        result.append(flat % n)
        flat //= n
    return tuple(reversed(result))
