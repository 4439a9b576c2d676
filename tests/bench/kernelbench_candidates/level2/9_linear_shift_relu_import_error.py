"""Does not compile: imports a module that Triton does not have."""

import torch
import torch.nn as nn
import triton.language.fused as fused


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, shift: float, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.shift, self.scale = shift, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return fused.relu((self.linear(x) - self.shift) * self.scale)
