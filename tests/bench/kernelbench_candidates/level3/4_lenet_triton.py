"""LeNet-5 with ReLU and 2 x 2 max pooling as one Triton kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_pool_kernel(x_ptr, y_ptr, height, width, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    out_width = width // 2
    out_height = height // 2
    column = at % out_width
    row = (at // out_width) % out_height
    plane = at // (out_width * out_height)
    corner = x_ptr + (plane * height + 2 * row) * width + 2 * column
    top = tl.maximum(tl.load(corner, mask=inside, other=0.0), tl.load(corner + 1, mask=inside, other=0.0))
    low = tl.maximum(tl.load(corner + width, mask=inside, other=0.0),
                     tl.load(corner + width + 1, mask=inside, other=0.0))
    tl.store(y_ptr + at, tl.maximum(tl.maximum(top, low), 0.0), mask=inside)


def relu_pool(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    batch, channels, height, width = x.shape
    y = torch.empty((batch, channels, height // 2, width // 2), device=x.device, dtype=x.dtype)
    n = y.numel()
    relu_pool_kernel[(triton.cdiv(n, 1024),)](x, y, height, width, n, BLOCK=1024)
    return y


class ModelNew(nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = relu_pool(self.conv1(x))
        x = relu_pool(self.conv2(x))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc3(torch.relu(self.fc2(x)))
