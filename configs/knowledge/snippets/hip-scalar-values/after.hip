__global__ void rows(const float* x, const float* scale, float* y, int count, int cols) {
  int wave = __builtin_amdgcn_readfirstlane(threadIdx.x / 64);
  int row = blockIdx.x * (blockDim.x / 64) + wave; // scalar
  if (row >= count) return;
  float s = scale[row]; // one scalar load
  for (int c = threadIdx.x % 64; c < cols; c += 64)
    y[(size_t)row * cols + c] = x[(size_t)row * cols + c] * s;
}
