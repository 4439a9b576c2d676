"""Convolution by cuDNN; ReLU and HardSwish fused."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_hardswish_kernel(const float* x, float* y, long n) {
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float v = fmaxf(x[i], 0.0f);
        y[i] = v * fminf((v + 3.0f) / 6.0f, 1.0f);
    }
}

torch::Tensor relu_hardswish(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    long n = x.numel();
    int threads = 256;
    long wanted = (n + threads - 1) / threads;
    int blocks = wanted < 65535 ? (int)wanted : 65535;
    relu_hardswish_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

cpp_source = "torch::Tensor relu_hardswish(torch::Tensor x);"

extension = load_inline(
    name="relu_hardswish_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["relu_hardswish"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.relu_hardswish(self.conv(x))
