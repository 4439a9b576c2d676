"""Crashes: passes a matrix of the wrong size on, so that forward raises."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B.t().contiguous())
