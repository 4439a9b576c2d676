# One program for 1024 neighbours.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(a, b, y, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.store(y + at, tl.load(a + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        y = torch.empty_like(a)
        size = a.numel()
        add_kernel[(triton.cdiv(size, 1024),)](a, b, y, size, BLOCK=1024)
        return y
