// bench: f(x half[16777216], y out half[16777216], n = 16777216) within 1e-3
__global__ void relu_scaled(const uint4* x, uint4* y, int n8) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n8) return;
  uint4 v = x[i];
  __half2* h = reinterpret_cast<__half2*>(&v);
  for (int k = 0; k < 4; ++k)
    h[k] = __hmax2(__hmul2(h[k], __float2half2_rn(1.5f)), __float2half2_rn(0.0f));
  y[i] = v;
}
void f(const __half* x, __half* y, int n) {
  relu_scaled<<<(n / 8 + 255) / 256, 256>>>((const uint4*)x, (uint4*)y, n / 8);
}
