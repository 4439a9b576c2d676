"""Does not compile: a bracket is missing, so that Python cannot read the file."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_relu_kernel(x_ptr, bias_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside)
    bias = tl.load(bias_ptr + column, mask=inside)
    tl.store(y_ptr + row * columns + column, tl.maximum(x + bias, 0.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, bias_shape: tuple) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out, bias=False)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        rows, columns = x.shape
        y = torch.empty_like(x)
        bias_relu_kernel[(rows, triton.cdiv(columns, 1024))](x, self.bias, y, columns, BLOCK=1024)
        return y
