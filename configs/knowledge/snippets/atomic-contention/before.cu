// bench: f(x uint8[16777216 < 4], y out int[4], n = 16777216) within 0
__global__ void counts(const unsigned char* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&y[x[i]], 1);
}
void f(const unsigned char* x, int* y, int n) {
  cudaMemsetAsync(y, 0, 4 * sizeof(int));
  counts<<<(n + 255) / 256, 256>>>(x, y, n);
}
