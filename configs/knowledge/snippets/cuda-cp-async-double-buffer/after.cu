#include <cuda_pipeline.h>
// Sums tiles of 1024 floats; a block of 256 threads has two tiles in shared memory.
__global__ void sums(const float* x, float* y, int tiles) {
  __shared__ __align__(16) float tile[2][1024];
  auto start = [&](int i) {
    if (i < tiles)
      __pipeline_memcpy_async(&tile[i % 2][threadIdx.x * 4], x + i * 1024 + threadIdx.x * 4, 16);
    __pipeline_commit(); // also when empty, so that the count below is right
  };
  start(0);
  float s = 0;
  for (int i = 0; i < tiles; ++i) {
    start(i + 1);
    __pipeline_wait_prior(1); // all but the newest group are there
    __syncthreads();
    for (int k = 0; k < 4; ++k) s += tile[i % 2][k * 256 + threadIdx.x];
    __syncthreads(); // before the tile is overwritten
  }
  y[threadIdx.x] = s;
}
