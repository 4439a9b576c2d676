"""Half of the numbers, doubled; which ones, torch's generator says."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 1024
COLUMNS = 1024


class Model(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=True) * 0.5 + x


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
