// 256 threads and at least 2 blocks an SM: at most 128 registers a thread.
__global__ void __launch_bounds__(256, 2) tile(const float* x, float* y) {
  float v[32];
  for (int i = 0; i < 32; ++i) v[i] = x[i * 256 + threadIdx.x];
  for (int i = 0; i < 32; ++i) y[i * 256 + threadIdx.x] = v[i] * v[31 - i];
}
