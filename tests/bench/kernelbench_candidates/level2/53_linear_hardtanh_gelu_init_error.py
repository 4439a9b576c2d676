"""Crashes: the constructor takes fewer arguments than the problem gives."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x))
