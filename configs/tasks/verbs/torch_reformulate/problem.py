"""For each point the sum of its squared distances from all points."""

import torch
import torch.nn as nn

POINTS = 1024
WIDTH = 64


class Model(nn.Module):
    def forward(self, x):
        return ((x[:, None, :] - x[None, :, :]) ** 2).sum(dim=2).sum(dim=1)


def get_inputs():
    return [torch.randn(POINTS, WIDTH)]


def get_init_inputs():
    return []
