"""Linear by cuBLAS; subtraction, product and ReLU fused."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shift_relu_kernel(x_ptr, y_ptr, n, shift, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.maximum((x - shift) * scale, 0.0)
    tl.store(y_ptr + at, y, mask=inside)


def shift_relu(x: torch.Tensor, shift: float, scale: float) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    block = 1024
    shift_relu_kernel[(triton.cdiv(n, block),)](x, y, n, shift, scale, BLOCK=block)
    return y


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, shift: float, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.shift = shift
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return shift_relu(self.linear(x), self.shift, self.scale)
