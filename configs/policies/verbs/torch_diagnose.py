import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x.view(x.shape[0], -1, 16), dim=2).view(x.shape)
