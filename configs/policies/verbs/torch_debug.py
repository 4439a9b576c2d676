import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        centered = x - x.mean(dim=1, keepdim=True)
        return centered * torch.rsqrt((centered * centered).mean(dim=1, keepdim=True) + 1e-3)
