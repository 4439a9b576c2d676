"""The referee's end of the buffers of a process: sets of inputs and outputs that both map."""

import random
from typing import Any

import torch

from kernelmill_torch import compare
from kernelmill_torch.buffers import BufferSet, Layout, SharedMemory, places_of
from kernelmill_torch.contents import WORDS

POISON = 0xA7
NO_NUMBER = 0xFF  # NaN of every floating type


def as_bits(x: torch.Tensor) -> torch.Tensor:
    """A narrow floating type as integers: copied as numbers, its NaN would have other bits on a GPU, and seem to be changed."""
    return x.view(WORDS[x.element_size()]) if x.is_floating_point() and x.element_size() < 4 else x


class Arena:
    """REQUIRES: close(). Contents are lists of inputs, one a set."""

    def __init__(self, lib, device: str, layout: Layout):
        self.device, self.layout = device, layout
        self.memory = SharedMemory.create(lib, device, layout.sets * layout.set_bytes + layout.places[-1])
        self.places = places_of(self.memory.bytes, layout)
        self.place = 0
        self.dice = random.SystemRandom()

    @property
    def sets(self) -> list[BufferSet]:
        return self.places[self.place]

    def move(self) -> None:
        """The sets lie elsewhere from now on, nobody knows where: what is right at one address only reads what is no number
        before or behind them."""
        self.place = self.dice.randrange(len(self.places))
        at = self.layout.places[self.place]
        end = at + self.layout.sets * self.layout.set_bytes
        self.memory.bytes[:at].fill_(NO_NUMBER)
        self.memory.bytes[end:].fill_(NO_NUMBER)

    def fill(self, contents: list[list[Any]]) -> None:
        """Puts contents into the first sets: on a GPU those of a type in as few launches as torch can, or who sees the first
        of them has time until the last is there."""
        kinds: dict[torch.dtype, tuple[list, list]] = {}
        for one, drawn in zip(self.sets, contents):
            for to, x in zip(one.inputs, drawn):
                if isinstance(x, torch.Tensor):
                    into, what = kinds.setdefault(x.dtype, ([], []))
                    into.append(as_bits(to))
                    what.append(as_bits(x))
        for into, what in kinds.values():
            if self.device == "cuda" and hasattr(torch, "_foreach_copy_"):
                torch._foreach_copy_(into, what)
                continue
            for to, x in zip(into, what):
                to.copy_(x)

    def poison(self, count: int) -> None:
        """Rubbish in the outputs of the first sets."""
        for one in self.sets[:count]:
            for x in one.outputs:
                x.view(torch.uint8).fill_(POISON) if x.dim() else x.fill_(-77)

    def wipe(self, count: int) -> None:
        """Rubbish in all of the first sets."""
        at = self.layout.places[self.place]
        self.memory.bytes[at : at + count * self.layout.set_bytes].fill_(POISON)

    def find_changed(self, contents: list[list[Any]], first: int = 0) -> list[int]:
        """Positions of inputs that are no longer what was put into a set, from the `first` one on."""
        pairs = [
            (i, now, was)
            for one, drawn in zip(self.sets[first:], contents)
            for i, (now, was) in enumerate(zip(one.inputs, drawn))
            if isinstance(was, torch.Tensor)
        ]
        return sorted({i for (i, _, _), is_other in zip(pairs, compare.differing([x[1:] for x in pairs])) if is_other})

    def close(self) -> None:
        """REQUIRES: nobody uses its tensors any more."""
        self.places = []
        self.memory.close()
