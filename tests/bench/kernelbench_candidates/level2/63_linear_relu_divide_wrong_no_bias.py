"""Wrong: forgets the bias of the linear layer."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_divide_plain_kernel(const float* x, float* y, long n, float divisor) {
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        y[i] = fmaxf(x[i], 0.0f) / divisor;
    }
}

torch::Tensor relu_divide_plain(torch::Tensor x, double divisor) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    long n = x.numel();
    int threads = 256;
    long wanted = (n + threads - 1) / threads;
    int blocks = wanted < 65535 ? (int)wanted : 65535;
    relu_divide_plain_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n, (float)divisor);
    return y;
}
"""

cpp_source = "torch::Tensor relu_divide_plain(torch::Tensor x, double divisor);"

extension = load_inline(
    name="relu_divide_plain_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["relu_divide_plain"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, n_in: int, n_out: int, divisor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.relu_divide_plain(x @ self.linear.weight.t(), self.divisor)
