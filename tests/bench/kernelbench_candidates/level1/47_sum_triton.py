"""Sum over the middle dimension: a program owns a block of columns and walks down."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        x = tl.load(x_ptr + (batch * rows + row[:, None]) * columns + column[None, :], mask=inside, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(y_ptr + batch * columns + column, total, mask=column < columns)


class ModelNew(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.dim != 1 or x.dim() != 3:
            raise ValueError("this kernel sums over dimension 1 of 3")
        x = x.contiguous()
        batch, rows, columns = x.shape
        y = torch.empty((batch, 1, columns), device=x.device, dtype=x.dtype)
        sum_kernel[(batch, triton.cdiv(columns, 256))](x, y, rows, columns, ROWS=16, BLOCK=256)
        return y
