// bench: f(x float[16777216], y out float[16777216], n = 16777216) within 1e-6
__global__ void scaled(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + 1;
}
void f(const float* x, float* y, int n) { scaled<<<(n + 255) / 256, 256>>>(x, y, n); }
