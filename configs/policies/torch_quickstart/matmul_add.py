import torch
import torch.nn as nn
ROWS = 512
IN_FEATURES = 512
OUT_FEATURES = 512

class ModelNew(nn.Module):

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x, y):
        return self.linear(x) + y
