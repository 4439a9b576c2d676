// bench: f(x half[16777216], y out half[16777216], n = 16777216) within 1e-3
__global__ void relu_scaled(const _Float16* x, _Float16* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > (_Float16)0 ? x[i] * (_Float16)1.5f : (_Float16)0;
}
void f(const __half* x, __half* y, int n) {
  relu_scaled<<<(n + 255) / 256, 256>>>((const _Float16*)x, (_Float16*)y, n);
}
