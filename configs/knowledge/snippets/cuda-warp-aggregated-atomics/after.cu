// bench: f(x float[8388608], count out int[1], n = 8388608) within 0
__device__ int append(int* counter, bool want) {
  unsigned all = __ballot_sync(0xffffffffu, want);
  int lane = threadIdx.x % 32, base = 0;
  if (lane == 0 && all != 0) base = atomicAdd(counter, __popc(all));
  base = __shfl_sync(0xffffffffu, base, 0);
  return base + __popc(all & ((1u << lane) - 1)); // this lane's place, if it wants one
}
__global__ void positives(const float* x, int* counter, int* places, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; // whole warps reach the call
  bool want = i < n && x[i] > 0;
  int place = append(counter, want);
  if (want && places) places[place] = i;
}
void f(const float* x, int* count, int n) {
  cudaMemsetAsync(count, 0, 4);
  positives<<<(n + 255) / 256, 256>>>(x, count, nullptr, n);
}
