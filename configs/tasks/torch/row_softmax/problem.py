"""Softmax of each row of a matrix."""

import torch
import torch.nn as nn

ROWS = 4096
COLUMNS = 1024


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS) * 3.0]


def get_init_inputs():
    return []
