"""Products by cuBLAS without bias; bias and ReLU in one pass in place of two."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void bias_act_kernel(float* x, const float* bias, long n, int columns, bool relu) {
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i] + bias[i % columns];
    x[i] = relu ? fmaxf(v, 0.0f) : v;
}

torch::Tensor linear_act(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, bool relu) {
    auto y = at::matmul(x, weight.t());
    long n = y.numel();
    bias_act_kernel<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), bias.data_ptr<float>(), n,
                                              (int)y.size(1), relu);
    return y;
}
"""

cpp_source = "torch::Tensor linear_act(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, bool relu);"

extension = load_inline(
    name="linear_act_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["linear_act"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, n_in: int, hidden: list[int], n_out: int) -> None:
        super().__init__()
        sizes = [n_in, *hidden, n_out]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            x = extension.linear_act(x, layer.weight, layer.bias, i + 1 < len(self.layers))
        return x
