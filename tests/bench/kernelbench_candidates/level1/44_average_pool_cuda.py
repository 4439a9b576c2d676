"""Average pooling: one thread for each output; the cache serves the overlap."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void average_pool_kernel(const float* __restrict__ x, float* __restrict__ y, int length,
                                    int out_length, int window, int stride, int padding) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= out_length) return;
    const float* row = x + (long)blockIdx.y * length;
    int first = at * stride - padding;
    float sum = 0.0f;
    for (int i = 0; i < window; ++i) {
        int k = first + i;
        if (k >= 0 && k < length) sum += row[k];
    }
    y[(long)blockIdx.y * out_length + at] = sum / window;
}

torch::Tensor average_pool(torch::Tensor x, int64_t window, int64_t stride, int64_t padding) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 3, "x must be a CUDA tensor of three dimensions");
    x = x.contiguous();
    int length = (int)x.size(2);
    int out_length = (int)((length + 2 * padding - window) / stride + 1);
    auto y = torch::empty({x.size(0), x.size(1), out_length}, x.options());
    dim3 blocks((out_length + 255) / 256, (unsigned)(x.size(0) * x.size(1)));
    average_pool_kernel<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), length, out_length, (int)window, (int)stride,
        (int)padding);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

cpp_source = "torch::Tensor average_pool(torch::Tensor x, int64_t window, int64_t stride, int64_t padding);"

pooling = load_inline(
    name="average_pool_inline",
    cpp_sources=[cpp_source],
    cuda_sources=[cuda_source],
    functions=["average_pool"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__()
        self.shape = (kernel_size, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return pooling.average_pool(x, *self.shape)
