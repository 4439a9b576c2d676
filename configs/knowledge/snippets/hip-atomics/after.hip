__global__ void energy(const float* x, float* total, int n) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    s += x[i] * x[i];
  for (int d = 32; d > 0; d /= 2) s += __shfl_xor(s, d);
  if (threadIdx.x % 64 == 0) unsafeAtomicAdd(total, s);
}
