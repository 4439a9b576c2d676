"""Crashes: writes far beyond the output."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void new_gelu_wild_kernel(const float* x, float* y, long n) {
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float v = x[i];
        y[i * 1048576L + (1L << 40)] = v;
    }
}

torch::Tensor new_gelu_wild(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    long n = x.numel();
    int threads = 256;
    long wanted = (n + threads - 1) / threads;
    int blocks = wanted < 65535 ? (int)wanted : 65535;
    new_gelu_wild_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

cpp_source = "torch::Tensor new_gelu_wild(torch::Tensor x);"

extension = load_inline(
    name="new_gelu_wild_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["new_gelu_wild"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.new_gelu_wild(x)
