// bench: f(x float[16777216], y out float[16777216], n = 16777216) within 1e-6
__global__ void scaled(const float4* x, float4* y, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  float4 v = x[i];
  y[i] = {v.x * 2 + 1, v.y * 2 + 1, v.z * 2 + 1, v.w * 2 + 1};
}
void f(const float* x, float* y, int n) {
  int n4 = n / 4; // n is a multiple of 4
  scaled<<<(n4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n4);
}
