import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        ring = torch.cat((x[:, -1:], x, x[:, :1]), dim=1)
        return 0.5 * x + 0.25 * (ring[:, :-2] + ring[:, 2:])
