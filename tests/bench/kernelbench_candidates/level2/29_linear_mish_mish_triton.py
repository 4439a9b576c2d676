"""Linear by cuBLAS; both Mish activations in one pass."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mish_mish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    # With e = exp(x): tanh(log(1 + e)) is (e e + 2 e) / (e e + 2 e + 2).
    e = tl.exp(tl.minimum(x, 20.0))
    u = e * (e + 2.0)
    m = x * u / (u + 2.0)
    e = tl.exp(tl.minimum(m, 20.0))
    u = e * (e + 2.0)
    y = m * u / (u + 2.0)
    tl.store(y_ptr + at, y, mask=inside)


def mish_mish(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    block = 1024
    mish_mish_kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK=block)
    return y


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return mish_mish(self.linear(x))
