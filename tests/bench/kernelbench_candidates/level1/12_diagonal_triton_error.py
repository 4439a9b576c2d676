"""Does not compile: Triton wants a power of two for the length of a range."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_rows_kernel(a_ptr, b_ptr, c_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    factor = tl.load(a_ptr + row)
    b = tl.load(b_ptr + row * columns + column, mask=inside)
    tl.store(c_ptr + row * columns + column, factor * b, mask=inside)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        B = B.contiguous()
        rows, columns = B.shape
        C = torch.empty_like(B)
        scale_rows_kernel[(rows, triton.cdiv(columns, 2048))](A, B, C, columns, BLOCK=1000)
        return C
