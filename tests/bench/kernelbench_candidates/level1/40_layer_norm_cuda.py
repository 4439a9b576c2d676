"""LayerNorm over millions of elements: sums of chunks in double, then one pass."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

constexpr int threads = 256;

__device__ double block_sum(double v) {
    __shared__ double part[threads / 32];
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < threads / 32 ? part[threadIdx.x] : 0.0;
    if (threadIdx.x < 32)
        for (int offset = 4; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
    __syncthreads();
    return v;
}

// Of each chunk of a row: the sum and the sum of squares.
__global__ void chunk_sums_kernel(const float* x, double* sums, long length, int chunks) {
    const float* row = x + blockIdx.y * length;
    double sum = 0.0, squares = 0.0;
    long step = (long)chunks * threads;
    for (long i = (long)blockIdx.x * threads + threadIdx.x; i < length; i += step) {
        double v = row[i];
        sum += v;
        squares += v * v;
    }
    sum = block_sum(sum);
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
        double* out = sums + 2 * ((long)blockIdx.y * chunks + blockIdx.x);
        out[0] = sum;
        out[1] = squares;
    }
}

__global__ void merge_kernel(const double* sums, float* moments, long length, int chunks, float eps) {
    double sum = 0.0, squares = 0.0;
    for (int i = threadIdx.x; i < chunks; i += threads) {
        sum += sums[2 * ((long)blockIdx.x * chunks + i)];
        squares += sums[2 * ((long)blockIdx.x * chunks + i) + 1];
    }
    sum = block_sum(sum);
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
        double mean = sum / length;
        moments[2 * blockIdx.x] = (float)mean;
        moments[2 * blockIdx.x + 1] = (float)(1.0 / sqrt(squares / length - mean * mean + eps));
    }
}

__global__ void normalize_kernel(const float* x, const float* weight, const float* bias,
                                 const float* moments, float* y, long length) {
    float mean = moments[2 * blockIdx.y], scale = moments[2 * blockIdx.y + 1];
    long step = (long)gridDim.x * threads;
    for (long i = (long)blockIdx.x * threads + threadIdx.x; i < length; i += step) {
        long at = blockIdx.y * length + i;
        y[at] = (x[at] - mean) * scale * weight[i] + bias[i];
    }
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    x = x.contiguous();
    long length = weight.numel();
    int rows = (int)(x.numel() / length), chunks = 128;
    auto sums = torch::empty({rows, chunks, 2}, x.options().dtype(torch::kFloat64));
    auto moments = torch::empty({rows, 2}, x.options());
    auto y = torch::empty_like(x);
    auto stream = c10::cuda::getCurrentCUDAStream();
    chunk_sums_kernel<<<dim3(chunks, rows), threads, 0, stream>>>(
        x.data_ptr<float>(), sums.data_ptr<double>(), length, chunks);
    merge_kernel<<<rows, threads, 0, stream>>>(
        sums.data_ptr<double>(), moments.data_ptr<float>(), length, chunks, (float)eps);
    normalize_kernel<<<dim3(512, rows), threads, 0, stream>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), moments.data_ptr<float>(),
        y.data_ptr<float>(), length);
    return y;
}
"""

cpp_source = (
    "torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);"
)

extension = load_inline(
    name="layer_norm_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["layer_norm"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple) -> None:
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.layer_norm(x, self.ln.weight, self.ln.bias, self.ln.eps)
