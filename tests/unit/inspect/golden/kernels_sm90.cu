#include <mma.h>

__device__ float half_of(float x) { return 0.5f * x; }

extern "C" __global__ void scaled(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = half_of(v.x);
  v.w = half_of(v.w);
  y[i] = v;
}

__global__ void doubled(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 2.1;
}

__global__ void summed(const float* x, float* y, int n) {
  __shared__ float part[256];
  float sum = 0;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    sum += x[threadIdx.x + i * n];
  part[threadIdx.x] = sum;
#pragma unroll 1
  for (int width = 128; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
  }
  if (threadIdx.x == 0) atomicAdd(y, part[0]);
}

__global__ void __launch_bounds__(1024, 2) crowded(const float* x, float* y, int n) {
  float a[30];
#pragma unroll
  for (int i = 0; i < 30; ++i) a[i] = x[threadIdx.x + i * n];
#pragma unroll
  for (int i = 0; i < 30; ++i) y[threadIdx.x + i * n] = a[i] * a[(i + 7) % 30];
}

__global__ void multiplied(const half* a, const half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> left;
  fragment<matrix_b, 16, 16, 16, half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(left, a, 16);
  load_matrix_sync(right, b, 16);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(c, sum, 16, mem_row_major);
}
