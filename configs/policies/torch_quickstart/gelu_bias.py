import torch
import torch.nn as nn
import torch.nn.functional as F
ROWS = 2048
FEATURES = 1024

class ModelNew(nn.Module):

    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.5)

    def forward(self, x, scale):
        return F.gelu(x + self.bias) * scale
