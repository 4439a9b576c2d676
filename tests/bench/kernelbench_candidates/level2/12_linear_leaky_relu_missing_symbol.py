"""Does not compile: what the bindings call is declared and defined nowhere."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scale_leaky_kernel(const float* x, float* y, long n, float scale, float slope) {
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float v = x[i] * scale;
        y[i] = v > 0.0f ? v : v * slope;
    }
}

"""

cpp_source = "torch::Tensor scale_leaky(torch::Tensor x, double scale, double slope);"

extension = load_inline(
    name="scale_leaky_missing",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["scale_leaky"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, scale: float, slope: float) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.scale = scale
        self.slope = slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.scale_leaky(self.linear(x), self.scale, self.slope)
