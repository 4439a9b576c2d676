"""Linear by cuBLAS; scaling and residual are one product."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_residual_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = x * factor + x
    tl.store(y_ptr + at, y, mask=inside)


def scale_residual(x: torch.Tensor, factor: float) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    block = 1024
    scale_residual_kernel[(triton.cdiv(n, block),)](x, y, n, factor, BLOCK=block)
    return y


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, factor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return scale_residual(self.linear(x), self.factor)
