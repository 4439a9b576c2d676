"""Each element becomes a weighted mean of itself and its two neighbours in a ring."""

import torch
import torch.nn as nn

ROWS = 1024
COLUMNS = 1000


class Model(nn.Module):
    def forward(self, x):
        return 0.5 * x + 0.25 * (torch.roll(x, 1, dims=1) + torch.roll(x, -1, dims=1))


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
