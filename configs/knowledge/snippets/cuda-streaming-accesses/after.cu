// bench: f(x float[16777216], table float[1048576], y out float[16777216], n = 16777216, mask = 1048575) within 0
__global__ void add(const float4* x, const float4* table, float4* y, int n4, int mask4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  float4 a = __ldcs(x + i), b = table[i & mask4];
  __stcs(y + i, float4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w});
}
void f(const float* x, const float* table, float* y, int n, int mask) {
  add<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (const float4*)table, (float4*)y, n / 4,
                                    mask / 4);
}
