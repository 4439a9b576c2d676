"""Depthwise convolution with a window of one column: each output takes a few rows of its plane."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def depthwise_kernel(
    x_ptr, weight_ptr, y_ptr, channels, height, width, out_height, out_width, stride, padding, dilation,
    TAPS: tl.constexpr, BLOCK: tl.constexpr,
):
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    x = column * stride - padding
    for i in range(TAPS):
        y = row * stride - padding + i * dilation
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (column < out_width)
        value = tl.load(x_ptr + (plane * height + y) * width + x, mask=inside, other=0.0)
        total += value * tl.load(weight_ptr + (plane % channels) * TAPS + i)
    tl.store(y_ptr + (plane * out_height + row) * out_width + column, total, mask=column < out_width)


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
                 dilation: int = 1, bias: bool = False) -> None:
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, in_channels, (kernel_size, 1), stride=stride, padding=padding,
                                dilation=dilation, groups=in_channels, bias=bias)
        self.taps, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        batch, channels, height, width = x.shape
        out_height = (height + 2 * self.padding - self.dilation * (self.taps - 1) - 1) // self.stride + 1
        out_width = (width + 2 * self.padding - 1) // self.stride + 1
        y = torch.empty((batch, channels, out_height, out_width), device=x.device, dtype=x.dtype)
        depthwise_kernel[(batch * channels, out_height, triton.cdiv(out_width, 512))](
            x, self.conv2d.weight, y, channels, height, width, out_height, out_width, self.stride,
            self.padding, self.dilation, TAPS=self.taps, BLOCK=512,
        )
        return y if self.conv2d.bias is None else y + self.conv2d.bias.view(1, -1, 1, 1)
