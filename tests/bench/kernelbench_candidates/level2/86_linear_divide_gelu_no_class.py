"""Does not compile: there is no ModelNew."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n_in: int, n_out: int, divisor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x) / self.divisor)
