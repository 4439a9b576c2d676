#include <cmath>

constexpr int kThreads = 256;

// One block a row: a tree in shared memory for the maximum, then one for the sum.
__global__ void log_sum_exp(const float* x, float* y, int cols) {
  __shared__ float tops[kThreads];
  __shared__ float sums[kThreads];
  const float* row = x + long(blockIdx.x) * cols;
  float top = 0;
  for (long j = threadIdx.x; j < cols; j += kThreads) top = fmaxf(top, row[j]);
  tops[threadIdx.x] = top;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) tops[threadIdx.x] = fmaxf(tops[threadIdx.x], tops[threadIdx.x + half]);
  }
  __syncthreads();
  top = tops[0];
  float sum = 0;
  for (long j = threadIdx.x; j < cols; j += kThreads) sum += expf(row[j] - top);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2)
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  if (threadIdx.x == 0) y[blockIdx.x] = top + logf(sums[0]);
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  log_sum_exp<<<rows, kThreads>>>(x, y, cols);
}
