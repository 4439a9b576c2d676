"""Wrong: at the edges it divides by the elements that exist, not by the length of the window."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def average_pool_kernel(x_ptr, y_ptr, length, out_length, stride, padding, WINDOW: tl.constexpr,
                        BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    count = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(WINDOW):
        k = at * stride - padding + i
        inside = (k >= 0) & (k < length) & (at < out_length)
        total += tl.load(x_ptr + row * length + k, mask=inside, other=0.0)
        count += tl.where(inside, 1.0, 0.0)
    tl.store(y_ptr + row * out_length + at, total / tl.maximum(count, 1.0), mask=at < out_length)


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__()
        self.window, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        batch, channels, length = x.shape
        out_length = (length + 2 * self.padding - self.window) // self.stride + 1
        y = torch.empty((batch, channels, out_length), device=x.device, dtype=x.dtype)
        average_pool_kernel[(batch * channels, triton.cdiv(out_length, 1024))](
            x, y, length, out_length, self.stride, self.padding, WINDOW=self.window, BLOCK=1024
        )
        return y
