"""Wrong: divides the squares by one less than the channels of a group."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, channels, eps, slope, ROWS: tl.constexpr,
                      WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    channel = group[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    inside = channel < channels
    x = tl.load(x_ptr + row * channels + channel, mask=inside, other=0.0)
    mean = tl.sum(x, axis=1) / WIDTH
    away = x - mean[:, None]
    scale = 1.0 / tl.sqrt(tl.sum(away * away, axis=1) / (WIDTH - 1) + eps)
    weight = tl.load(weight_ptr + channel, mask=inside)
    bias = tl.load(bias_ptr + channel, mask=inside)
    y = away * scale[:, None] * weight + bias
    y = 2.0 * tl.where(y > 0.0, y, slope * y)
    tl.store(y_ptr + row * channels + channel, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_hidden: int, groups: int, eps: float = 1e-5, slope: float = 0.01) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_hidden)
        self.norm = nn.GroupNorm(groups, n_hidden, eps=eps)
        self.slope = slope
        self.width = n_hidden // groups
        if self.width & (self.width - 1):
            raise ValueError("the channels of a group must be a power of two")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x).contiguous()
        y = torch.empty_like(x)
        rows = 32
        groups = x.shape[1] // self.width
        group_norm_kernel[(x.shape[0], triton.cdiv(groups, rows))](
            x, self.norm.weight, self.norm.bias, y, x.shape[1], self.norm.eps, self.slope, ROWS=rows,
            WIDTH=self.width,
        )
        return y
