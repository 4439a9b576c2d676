// bench: f(x float[33554432], y out float[33792], n = 33554432, threads = 33792) within 1e-4
__global__ void sums(const float4* x, float* y, int n4) {
  int step = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 1
  for (int i = t; i < n4; i += step) {
    float4 v = x[i];
    s += v.x + v.y + v.z + v.w;
  }
  y[t] = s;
}
void f(const float* x, float* y, int n, int threads) {
  sums<<<threads / 256, 256>>>((const float4*)x, y, n / 4);
}
