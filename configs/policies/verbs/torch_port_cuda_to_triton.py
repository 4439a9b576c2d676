import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_rows_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0.0)
    length = tl.sqrt(tl.sum(values * values, axis=0))
    tl.store(y + row * columns + column, values / length, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        scale_rows_kernel[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
        return y
