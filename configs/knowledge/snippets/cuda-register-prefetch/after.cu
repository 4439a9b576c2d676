// bench: f(x float[33554432], y out float[33792], n = 33554432, threads = 33792) within 1e-4
__global__ void sums(const float4* __restrict__ x, float* y, int n4) {
  int step = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x, i = t;
  float s = 0;
  auto add = [&](float4 v) { s += v.x + v.y + v.z + v.w; };
  for (; i + 3 * step < n4; i += 4 * step) {
    float4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
    add(a), add(b), add(c), add(d);
  }
  for (; i < n4; i += step) add(x[i]);
  y[t] = s;
}
void f(const float* x, float* y, int n, int threads) {
  sums<<<threads / 256, 256>>>((const float4*)x, y, n / 4);
}
