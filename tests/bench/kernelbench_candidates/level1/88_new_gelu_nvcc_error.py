"""Does not compile: the kernel uses a name that is declared nowhere."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void new_gelu_broken_kernel(const float* x, float* y, long n) {
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float v = x[i];
        float z = sqrt_two_over_pi * (v + 0.044715f * v * v * v);
        y[i] = 0.5f * v * (1.0f + tanhf(z));
    }
}

torch::Tensor new_gelu_broken(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    long n = x.numel();
    int threads = 256;
    long wanted = (n + threads - 1) / threads;
    int blocks = wanted < 65535 ? (int)wanted : 65535;
    new_gelu_broken_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

cpp_source = "torch::Tensor new_gelu_broken(torch::Tensor x);"

extension = load_inline(
    name="new_gelu_broken_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["new_gelu_broken"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.new_gelu_broken(x)
