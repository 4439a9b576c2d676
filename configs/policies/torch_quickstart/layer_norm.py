import torch
import torch.nn as nn
ROWS = 4096
FEATURES = 1024

class ModelNew(nn.Module):

    def __init__(self, features, eps):
        super().__init__()
        self.norm = nn.LayerNorm(features, eps=eps)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.uniform_(self.norm.bias, -1.0, 1.0)

    def forward(self, x):
        return self.norm(x)
