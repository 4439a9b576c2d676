__device__ float wave_sum(float v) {
  for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_xor(v, d);
  return v;
}
// This lane's rank among those that want one, and their number.
__device__ int rank_of(bool want, int* total) {
  unsigned long long all = __ballot(want);
  *total = __popcll(all);
  int lane = threadIdx.x % warpSize;
  return __popcll(all & ((1ull << lane) - 1));
}
__global__ void sums(const float* x, float* y) {
  float s = wave_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x % warpSize == 0) y[(blockIdx.x * blockDim.x + threadIdx.x) / warpSize] = s;
}
