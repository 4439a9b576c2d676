"""Looks rows up in a table and sums those of each bag."""

import torch
import torch.nn as nn

ENTRIES = 20000
WIDTH = 256
BAGS = 1024
PER_BAG = 16


class Model(nn.Module):
    def __init__(self, entries, width):
        super().__init__()
        self.table = nn.Embedding(entries, width)

    def forward(self, indices):
        return self.table(indices).sum(dim=1)


def get_inputs():
    return [torch.randint(0, ENTRIES, (BAGS, PER_BAG))]


def get_init_inputs():
    return [ENTRIES, WIDTH]
