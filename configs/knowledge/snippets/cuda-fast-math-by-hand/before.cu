// bench: f(x float[16777216], y out float[16777216], n = 16777216) within 1e-3
__global__ void gates(const float4* x, float4* y, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  float4 v = x[i];
  auto gate = [](float t) { return tanhf(t) * (1.0f / (1.0f + expf(-t))); };
  y[i] = {gate(v.x), gate(v.y), gate(v.z), gate(v.w)};
}
void f(const float* x, float* y, int n) {
  gates<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4);
}
