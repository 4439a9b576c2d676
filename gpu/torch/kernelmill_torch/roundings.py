"""What honest arithmetic may differ by inside of a model that rounds to narrow types on its way: to bfloat16 between two products, to fp8
or int8 where it quantizes. Double precision says nothing of that, for such a model rounds there all the same. So the model is run once
more, and what each of its operators gives in a narrow type is off by up to one rounding; what is quantized, by what sums in another
order lose. No candidate has a say in this."""

from typing import Any, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from kernelmill_torch.candidate import seed_everything

NARROW = tuple(
    getattr(torch, x)
    for x in ("bfloat16", "float16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
    if hasattr(torch, x)
)
WIDE = (torch.float32, torch.float64)
ORDER = 2.0**-18  # relative: what float32 loses in sums in any order
FLIPPED = 1 / 8  # of numbers, that become a neighbour: they differ about as where a rounding is left out
NEIGHBOUR = 0.7  # times the type's epsilon: the next number, wherever it lies
TIMES = 2
SEED = 7001
# They move numbers and make none: who does the same has the same bits.
MOVERS = {
    "alias_copy abs amax amin cat clone constant_pad_nd copy embedding expand_copy flip gather index index_select lift_fresh_copy "
    "masked_fill max maximum min minimum neg new_zeros permute_copy relu repeat roll select_copy slice_copy slice_scatter stack "
    "t_copy topk sort transpose_copy unsqueeze_copy view_copy where zeros_like ones_like empty_like full_like new_empty new_full"
}.pop().split()
ROUNDERS = {"round", "floor", "ceil", "trunc"}  # of wide numbers, before they are cast to integers


def is_quantized(x: torch.dtype) -> bool:
    """Whether a number of this type is one of few."""
    return torch.empty((), dtype=x).element_size() == 1


class Roundings(TorchDispatchMode):
    """Within, what is rounded is a little off where `moves`; `found`: whether anything was rounded on the way."""

    def __init__(self, moves: bool, seed: int = 0):
        super().__init__()
        self.moves, self.found = moves, False
        self.seed = SEED + seed
        self.generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        name = schema.name.partition("::")[2]
        if name in MOVERS or any(x.alias_info is not None for x in schema.returns):
            return func(*args, **kwargs)
        if name in ROUNDERS or name == "_to_copy":
            return self.rounded(func, args, kwargs, name)
        if not any(isinstance(x, torch.Tensor) for x in args) and not any(isinstance(x, (list, tuple)) for x in args):
            return func(*args, **kwargs)  # makes a tensor of nothing
        return tree_map(self.off_by_a_rounding, func(*args, **kwargs))

    def rounded(self, func, args, kwargs, name: str) -> Any:
        """An operator that rounds what it is given."""
        x, to = args[0], kwargs.get("dtype")
        if x.dtype in WIDE and (name in ROUNDERS or to is not None and is_quantized(to) and to != torch.bool):
            self.found |= name == "_to_copy"
            if self.moves:
                off = ORDER * self.drawn(x) * x
                if name == "_to_copy" and not to.is_floating_point:  # rounded before: a cast cuts off what lies below
                    off = torch.where(x == x.round(), torch.zeros_like(x), off)
                args = (x + off, *args[1:])
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        narrower = result.dtype in NARROW and x.is_floating_point() and x.element_size() > result.element_size()
        return self.off_by_a_rounding(result) if narrower else result

    def off_by_a_rounding(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.dtype not in NARROW or not x.numel():
            return x
        self.found = True
        if not self.moves or x.element_size() == 1:  # what is quantized was moved before
            return x
        wide = x.float()
        drawn = self.drawn(wide)
        by = torch.where(drawn.abs() < FLIPPED, drawn.sign(), torch.zeros_like(drawn))
        return wide.addcmul_(wide, by, value=torch.finfo(x.dtype).eps * NEIGHBOUR).to(x.dtype)

    def drawn(self, x: torch.Tensor) -> torch.Tensor:
        """Numbers between -1 and 1. The generators of the model are left alone."""
        dice = self.generators.get(x.device)
        if dice is None:
            dice = self.generators[x.device] = torch.Generator(device=x.device)
            dice.manual_seed(self.seed)
        return torch.rand(x.shape, generator=dice, dtype=x.dtype, device=x.device).mul_(2).sub_(1)


def runs_with_roundings(problem: Any, inputs: list[Any], seed: int) -> Iterator[list[torch.Tensor]]:
    """The model's outputs in its own precision, each time a little off."""
    for i in range(TIMES):
        seed_everything(seed)
        with Roundings(True, i):
            found = problem.run(inputs)
        yield found


def rounds_inside(problem: Any, inputs: list[Any]) -> bool:
    """Whether the model rounds on its way where it should run in double precision, or in its own where it cannot."""
    mode = Roundings(False)
    try:
        with mode:
            if problem.run_exact(inputs) is None:
                problem.run(inputs)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return False
    return mode.found
