// bench: f(x half[16777216], y out half[16777216], n = 16777216) within 1e-3
__global__ void relu_scaled(const __half* x, __half* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2half(fmaxf(__half2float(x[i]) * 1.5f, 0.0f));
}
void f(const __half* x, __half* y, int n) { relu_scaled<<<(n + 255) / 256, 256>>>(x, y, n); }
