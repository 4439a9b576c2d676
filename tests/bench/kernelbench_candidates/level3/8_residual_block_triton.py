"""A residual block whose last sum and ReLU are one Triton kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(a_ptr + at, mask=inside) + tl.load(b_ptr + at, mask=inside)
    tl.store(y_ptr + at, tl.maximum(total, 0.0), mask=inside)


def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    y = torch.empty_like(a)
    n = a.numel()
    add_relu_kernel[(triton.cdiv(n, 2048),)](a, b, y, n, BLOCK=2048)
    return y


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False),
                                        nn.BatchNorm2d(n_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu_(self.bn1(self.conv1(x)))
        return add_relu(self.bn2(self.conv2(y)), self.downsample(x))
