"""What is right on a problem's contents, and what an honest answer may be off there."""

import contextlib
from typing import Any, Iterator

import torch

from kernelmill_torch.admission import Admitted, has_scale_of_its_own, may_be_copied, refine, shifts_of
from kernelmill_torch.buffers import Layout
from kernelmill_torch.contents import KINDS, OWN
from kernelmill_torch.problem import Problem, Truth
from kernelmill_torch.steadiness import forgiven, unsteadiness

LARGE = 1 << 30  # bytes of one set of buffers
LOSSES_SEED = 19


class Truths:
    """Part of a bench, whose attributes it uses."""

    problem: Problem
    layout: Layout
    admitted: Admitted
    is_random: bool  # whether the model draws random numbers on some kind of contents
    known_truths: dict[tuple, Truth]  # by parameters and kind
    looks_again = False  # at a candidate; see again()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """While it is found out whether what seems wrong is so."""
        self.looks_again = True
        yield
        self.looks_again = False  # what ended it else is still to be asked for

    def truth(self, inputs: list[Any], seed: int, kind: str = OWN) -> Truth:
        """What is right for contents of a kind, and what the arithmetic may lose there."""
        gauge = self.admitted.gauges[kind]
        shifts = shifts_of(inputs, self.problem) if has_scale_of_its_own(inputs, gauge) else ()
        result = self.problem.truth(inputs, seed)
        refine(result, gauge, self.problem, not self.has_parameters(), shifts)
        if len(self.known_truths) > 2 * len(KINDS):
            self.known_truths.clear()
        self.known_truths.setdefault(
            (self.problem.model_key, kind),
            Truth(
                [],
                result.level,
                result.spread,
                result.floor,
                result.gain,
                is_exact=result.is_exact,
                types=result.types,
                flips=result.flips,
            ),
        )
        return result

    def shifts(self, contents: list[list[Any]], kind: str) -> list[float]:
        """How large outputs of a few elements are, one by one, of all these draws; none where that does not hang on the draw."""
        if not has_scale_of_its_own(contents[0], self.admitted.gauges[kind]):
            return []
        return [x for inputs in contents for x in shifts_of(inputs, self.problem)]

    def forgive(
        self, outputs: list[torch.Tensor], wanted: list[torch.Tensor], contents: list[list[Any]], kind: str
    ) -> list[torch.Tensor]:
        """Outputs of all these draws, with what is wanted where an element hangs on the last bits of the inputs, where that can be asked."""
        if kind == OWN or self.is_random or not may_be_copied(contents[0]):
            return outputs
        with self.again():
            unsteady = [x for inputs in contents for x in unsteadiness(inputs, self.problem)]
            return [forgiven(*x) for x in zip(outputs, wanted, unsteady)]

    def can_ask_small_scales(self, inputs: list[Any]) -> bool:
        """Whether elements of a draw can be held by their own size: where double precision says what is right."""
        is_float32 = self.problem.is_float32 and not self.problem.rounds
        return self.problem.exact and is_float32 and not self.is_random and may_be_copied(inputs)

    def prepare_kind(self, kind: str) -> None:
        """Before contents of a kind are drawn for a row: what its outputs will be held by takes most memory of large ones, and nothing
        else is held yet."""
        if self.layout.set_bytes > LARGE:
            self.losses(kind)

    def losses(self, kind: str) -> Truth:
        """What it loses there with the parameters in use; nothing is wanted."""
        key = self.problem.model_key, kind
        if key not in self.known_truths:
            self.truth(self.problem.draw(LOSSES_SEED, kind), LOSSES_SEED, kind)
        return self.known_truths[key]
