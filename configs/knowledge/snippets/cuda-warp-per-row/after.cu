// bench: f(x float[65536x256], y out float[65536], rows = 65536, cols = 256) within 1e-5
__global__ void norms(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float4* p = (const float4*)(x + (size_t)row * cols);
  float s = 0;
  for (int i = lane; i < cols / 4; i += 32) {
    float4 v = p[i];
    s += fabsf(v.x) + fabsf(v.y) + fabsf(v.z) + fabsf(v.w);
  }
  for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
  if (lane == 0) y[row] = s;
}
void f(const float* x, float* y, int rows, int cols) {
  norms<<<(rows + 7) / 8, 256>>>(x, y, rows, cols);
}
