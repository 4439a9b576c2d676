import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def variance_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / BLOCK
    centered = values - mean
    tl.store(y + row, tl.sum(centered * centered, axis=0) / columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        variance_kernel[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
        return y
