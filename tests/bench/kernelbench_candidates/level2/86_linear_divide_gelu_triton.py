"""Linear by cuBLAS; division and exact GELU fused."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def divide_gelu_kernel(x_ptr, y_ptr, n, divisor, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    x = x / divisor
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + at, y, mask=inside)


def divide_gelu(x: torch.Tensor, divisor: float) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    block = 1024
    divide_gelu_kernel[(triton.cdiv(n, block),)](x, y, n, divisor, BLOCK=block)
    return y


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, divisor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return divide_gelu(self.linear(x), self.divisor)
