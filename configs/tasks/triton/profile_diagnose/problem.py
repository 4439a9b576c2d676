"""The sum of each column of a matrix."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 4096


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=0)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
