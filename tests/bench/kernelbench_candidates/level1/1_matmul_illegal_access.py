"""Crashes: a Triton kernel that reads far beyond its input, with no mask."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def wild_kernel(a_ptr, c_ptr, far, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c_ptr + at, tl.load(a_ptr + at + far))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        wild_kernel[(C.numel() // 1024,)](A, C, 1 << 42, BLOCK=1024)
        return C
