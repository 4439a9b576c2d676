// bench: f(x float[16777216], y out float[16777216], n = 16777216) within 1e-3
__device__ float fast_tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__global__ void gates(const float4* x, float4* y, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  float4 v = x[i];
  auto gate = [](float t) { return fast_tanh(t) * __fdividef(1.0f, 1.0f + __expf(-t)); };
  y[i] = {gate(v.x), gate(v.y), gate(v.z), gate(v.w)};
}
void f(const float* x, float* y, int n) {
  gates<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4);
}
