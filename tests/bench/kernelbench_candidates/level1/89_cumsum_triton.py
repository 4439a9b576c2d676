"""Running sum of rows: a program walks one row and carries the total."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, length, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < length
        x = tl.load(x_ptr + row * length + at, mask=inside, other=0.0)
        tl.store(y_ptr + row * length + at, tl.cumsum(x, axis=0) + carry, mask=inside)
        carry += tl.sum(x, axis=0)


class ModelNew(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.dim not in (-1, x.dim() - 1):
            raise ValueError("this kernel sums over the last dimension")
        x = x.contiguous()
        y = torch.empty_like(x)
        length = x.shape[-1]
        cumsum_kernel[(x.numel() // length,)](x, y, length, BLOCK=2048, num_warps=8)
        return y
