import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        centered = x - x.mean(dim=1, keepdim=True)
        return centered / torch.sqrt(x.var(dim=1, keepdim=True, correction=0) + 1e-3)
