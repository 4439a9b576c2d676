"""Attention with ReLU in place of softmax: scaling, mask and ReLU of the scores in one pass."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def causal_relu_kernel(x_ptr, length, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    seen = at % length <= (at // length) % length
    x = tl.load(x_ptr + at, mask=inside & seen, other=0.0)
    tl.store(x_ptr + at, tl.maximum(x * scale, 0.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        # The problem makes this layer, too, and never uses it.
        self.unused = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        size = width // self.heads
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(-2, -1)).contiguous()
        n = scores.numel()
        causal_relu_kernel[(triton.cdiv(n, 2048),)](scores, length, size**-0.5, n, BLOCK=2048)
        return torch.matmul(scores, v).transpose(1, 2).reshape(batch, length, width)
