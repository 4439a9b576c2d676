"""Causal attention: scaling, mask and softmax of the scores in one pass over a row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def causal_softmax_kernel(x_ptr, y_ptr, length, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    seen = column <= row % length
    x = tl.load(x_ptr + row * length + column, mask=seen, other=float("-inf")) * scale
    e = tl.where(seen, tl.exp(x - tl.max(x, axis=0)), 0.0)
    tl.store(y_ptr + row * length + column, e / tl.sum(e, axis=0), mask=column < length)


def causal_softmax(scores: torch.Tensor, scale: float) -> torch.Tensor:
    scores = scores.contiguous()
    y = torch.empty_like(scores)
    length = scores.shape[-1]
    causal_softmax_kernel[(scores.numel() // length,)](
        scores, y, length, scale, BLOCK=triton.next_power_of_2(length)
    )
    return y


class ModelNew(nn.Module):
    def __init__(self, width: int, heads: int, attention_drop: float, residual_drop: float,
                 longest: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.heads = heads
        if attention_drop or residual_drop:
            raise ValueError("this kernel has no dropout")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        size = width // self.heads
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        weights = causal_softmax(torch.matmul(q, k.transpose(-2, -1)), size**-0.5)
        y = torch.matmul(weights, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))
