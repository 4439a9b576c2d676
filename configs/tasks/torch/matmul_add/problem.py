"""A linear layer, and a second input added to its result."""

import torch
import torch.nn as nn

ROWS = 512
IN_FEATURES = 512
OUT_FEATURES = 512


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x, y):
        return self.linear(x) + y


def get_inputs():
    return [torch.randn(ROWS, IN_FEATURES), torch.randn(ROWS, OUT_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES]
