// 256 threads: up to 256 registers a lane when two wavefronts a SIMD are enough.
__global__ void __launch_bounds__(256)
    __attribute__((amdgpu_waves_per_eu(2, 2))) tile(const float* x, float* y) {
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = x[i * 256 + threadIdx.x];
  for (int i = 0; i < 64; ++i) y[i * 256 + threadIdx.x] = v[i] * v[63 - i];
}
