"""Convolution by cuDNN; HardSwish and ReLU fused."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def hardswish_relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.maximum(x * tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0, 0.0)
    tl.store(y_ptr + at, y, mask=inside)


def hardswish_relu(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    block = 2048
    hardswish_relu_kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK=block)
    return y


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return hardswish_relu(self.conv(x))
