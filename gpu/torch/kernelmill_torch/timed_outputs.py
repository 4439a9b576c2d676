"""Outputs of timed calls: every one is checked, against the baseline's or the model's."""

import random
from typing import Any, Optional, Sequence

import torch

from kernelmill_torch import compare
from kernelmill_torch.buffers import BufferSet
from kernelmill_torch.candidate import seed_everything
from kernelmill_torch.contents import OWN
from kernelmill_torch.judged import Judged

LOOKED_AT = 2  # calls of a batch whose elements are held by their own size


class TimedOutputs(Judged):
    """REQUIRES: correctness was judged, which says by what rules timed outputs are."""

    def count_bad(
        self, contents: list, outputs: list[BufferSet], seed: int = 0, known: Optional[list[torch.Tensor]] = None
    ) -> float:
        """Wrong elements in the outputs of a batch, which began with a seed. `known`: what the
        baseline gave; before it calls anything wrong, that is computed once more."""
        drawn = contents[: len(outputs)]
        got = [x for one in outputs for x in one.outputs]
        wanted = known

        def bad(got: list[torch.Tensor], shifts: Sequence[float]) -> float:
            return compare.count_bad(list(zip(got, wanted, self.rules_when_timed(self.kind, wanted, shifts))))

        is_wrong = known is None or bad(got, [0.0] * len(known)) > 0
        if is_wrong:
            if seed:
                seed_everything(seed)
            wanted = [x for one in drawn for x in self.bench.problem.run(one)]
            is_wrong = bad(got, [0.0] * len(wanted)) > 0

        # Most are right as they are. What a draw's scale is takes four more runs of the model, and what is steady there seven.
        if not is_wrong:
            self.note_share(got, wanted, self.rules_when_timed(self.kind, wanted))
            return self.wrong_of_some(drawn, outputs, wanted)
        shifts = self.bench.shifts(drawn, self.kind)
        found = bad(got, shifts)
        return found and bad(self.bench.forgive(got, wanted, drawn, self.kind), shifts)

    def wrong_of_some(self, drawn: list[Any], outputs: list[BufferSet], wanted: list[torch.Tensor]) -> float:
        """Elements of outputs that are right by the bounds of the whole, as wrong_by_own_size() has them."""
        if self.kind != OWN or not drawn or not self.asks_small_scales(drawn[0]):
            return 0.0
        return self.wrong_by_own_size([x for one in outputs for x in one.outputs], wanted, drawn)

    def wrong_by_own_size(self, got: list[torch.Tensor], wanted: list[torch.Tensor], drawn: list[Any]) -> float:
        """Elements of a few calls of a batch, as small_scales.py has them; nobody knows which calls."""
        each, scales = len(wanted) // len(drawn), self.small_scales
        for i in random.SystemRandom().sample(range(len(drawn)), min(LOOKED_AT, len(drawn))):
            mine, want = (x[i * each : (i + 1) * each] for x in (got, wanted))
            if scales.seems_wrong(mine, want, self.bench.places):
                exact = self.bench.problem.run_exact(drawn[i])
                if exact is None:
                    continue
                with self.bench.again():
                    share = scales.wrong(mine, exact, drawn[i], self.bench.problem)
                if share:
                    return max(1.0, share * max(x.numel() for x in exact))
                scales.was_right = True
        return 0.0
