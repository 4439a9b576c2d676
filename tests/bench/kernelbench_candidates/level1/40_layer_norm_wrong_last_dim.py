"""Wrong: takes mean and variance over the last dimension alone."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, length, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * width + column, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / width
    away = tl.where(inside, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(away * away, axis=0) / width + eps)
    at = (row * width) % length + column
    weight = tl.load(weight_ptr + at, mask=inside)
    bias = tl.load(bias_ptr + at, mask=inside)
    tl.store(y_ptr + row * width + column, away * scale * weight + bias, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple) -> None:
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        width = x.shape[-1]
        row_norm_kernel[(x.numel() // width,)](
            x, self.ln.weight, self.ln.bias, y, self.ln.weight.numel(), width, self.ln.eps,
            BLOCK=triton.next_power_of_2(width),
        )
        return y
