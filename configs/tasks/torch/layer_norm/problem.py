"""Layer norm over the last dimension, with a weight and a bias that are far from one and zero."""

import torch
import torch.nn as nn

ROWS = 4096
FEATURES = 1024


class Model(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.norm = nn.LayerNorm(features, eps=eps)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.uniform_(self.norm.bias, -1.0, 1.0)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES) * 2.0 + 1.0]


def get_init_inputs():
    return [FEATURES, 1e-5]
