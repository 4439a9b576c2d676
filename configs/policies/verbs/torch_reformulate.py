import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        centered = x - x.mean(dim=0)
        own = (centered * centered).sum(dim=1)
        return x.shape[0] * own + own.sum()
