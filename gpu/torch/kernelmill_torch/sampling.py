"""Elements of outputs at places that nobody knows: what was there when a call was done must not change later."""

import torch

from kernelmill_torch import compare
from kernelmill_torch.buffers import BufferSet

SAMPLES = 4096  # places of an output

Sampled = list[tuple[torch.Tensor, torch.Tensor]]  # places, and what was there


def sample(sets: list[BufferSet], places: torch.Generator) -> Sampled:
    """Of every output of sets."""
    result = []
    for one in sets:
        for x in one.outputs:
            count = min(SAMPLES, x.numel())
            at = torch.randint(0, max(1, x.numel()), (count,), generator=places, device=x.device)
            result.append((at, x.reshape(-1)[at]))
    if result and result[0][0].is_cuda:
        torch.cuda.synchronize()
    return result


def has_changed(sampled: Sampled, sets: list[BufferSet]) -> bool:
    """Whether the outputs of sets are not what was sampled of them."""
    outputs = [x for one in sets for x in one.outputs]
    return any(not compare.same_bytes(x.reshape(-1)[places], was) for x, (places, was) in zip(outputs, sampled))
