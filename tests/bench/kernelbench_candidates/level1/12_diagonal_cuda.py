"""Scales each row, four elements at a time."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scale_rows_kernel(const float* a, const float4* b, float4* c, int columns4) {
    long row = blockIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns4) return;
    float factor = a[row];
    float4 v = b[row * columns4 + column];
    c[row * columns4 + column] = make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
}

torch::Tensor scale_rows(torch::Tensor a, torch::Tensor b) {
    a = a.contiguous();
    b = b.contiguous();
    TORCH_CHECK(b.size(1) % 4 == 0, "the number of columns must be a multiple of 4");
    auto c = torch::empty_like(b);
    int columns4 = b.size(1) / 4;
    dim3 blocks((columns4 + 255) / 256, b.size(0));
    scale_rows_kernel<<<blocks, 256>>>(a.data_ptr<float>(), reinterpret_cast<float4*>(b.data_ptr<float>()),
                                       reinterpret_cast<float4*>(c.data_ptr<float>()), columns4);
    return c;
}
"""

cpp_source = "torch::Tensor scale_rows(torch::Tensor a, torch::Tensor b);"

extension = load_inline(
    name="scale_rows_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["scale_rows"],
    verbose=False,
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.scale_rows(A, B)
