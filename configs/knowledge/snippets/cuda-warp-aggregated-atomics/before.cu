// bench: f(x float[8388608], count out int[1], n = 8388608) within 0
__global__ void positives(const float* x, int* counter, int* places, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0) {
    int place = atomicAdd(counter, 1);
    if (places) places[place] = i;
  }
}
void f(const float* x, int* count, int n) {
  cudaMemsetAsync(count, 0, 4);
  positives<<<(n + 255) / 256, 256>>>(x, count, nullptr, n);
}
