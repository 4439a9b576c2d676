"""A tiled product through shared memory that skips the zeros of both lower triangles."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

constexpr int tile = 64;   // outputs of a block in each direction
constexpr int depth = 16;  // inner elements at a time
constexpr int per = 4;     // outputs of a thread in each direction

__global__ void matmul_kernel(const float* a, const float* b, float* c, int M, int N, int K) {
    __shared__ float as[depth][tile + 1];
    __shared__ float bs[depth][tile];
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    long row0 = (long)blockIdx.y * tile, column0 = (long)blockIdx.x * tile;
    float sum[per][per] = {};
    // Of row r and column c only the inner elements from c to r count.
    int first = (int)column0 / depth * depth;
    int last = min(K, (int)row0 + tile);
    for (int start = first; start < last; start += depth) {
        for (int i = threadIdx.x; i < tile * depth; i += 256) {
            int r = i / depth, k = i % depth;
            bool inside = row0 + r < M && start + k < K;
            as[k][r] = inside ? a[(row0 + r) * K + start + k] : 0.0f;
        }
        for (int i = threadIdx.x; i < tile * depth; i += 256) {
            int k = i / tile, n = i % tile;
            bool inside = column0 + n < N && start + k < K;
            bs[k][n] = inside ? b[(long)(start + k) * N + column0 + n] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < depth; ++k) {
            float left[per], right[per];
            for (int i = 0; i < per; ++i) left[i] = as[k][y + 16 * i];
            for (int i = 0; i < per; ++i) right[i] = bs[k][x + 16 * i];
            for (int i = 0; i < per; ++i)
                for (int j = 0; j < per; ++j) sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < per; ++i)
        for (int j = 0; j < per; ++j) {
            long row = row0 + y + 16 * i, column = column0 + x + 16 * j;
            if (row < M && column < N) c[row * N + column] = column <= row ? sum[i][j] : 0.0f;
        }
}

torch::Tensor tiled_matmul(torch::Tensor a, torch::Tensor b) {
    a = a.contiguous();
    b = b.contiguous();
    int M = a.size(0), K = a.size(1), N = b.size(1);
    auto c = torch::empty({M, N}, a.options());
    dim3 blocks((N + tile - 1) / tile, (M + tile - 1) / tile);
    matmul_kernel<<<blocks, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, N, K);
    return c;
}
"""

cpp_source = "torch::Tensor tiled_matmul(torch::Tensor a, torch::Tensor b);"

extension = load_inline(
    name="lower_triangular_inline",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["tiled_matmul"],
    verbose=False,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tiled_matmul(A, B)
