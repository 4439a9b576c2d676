typedef float float4_ __attribute__((ext_vector_type(4)));
// One wavefront: c (16x16) = a (16xK, fp8, row-major) * b (16xK, fp8)^T, times a scale.
__global__ void tile(const unsigned char* a, const unsigned char* b, float* c, int K, float scale) {
  int l = threadIdx.x, line = l % 16, k8 = l / 16 * 8;
  float4_ acc = {0, 0, 0, 0};
  for (int k = 0; k < K; k += 32) {
    long x = *(const long*)(a + line * K + k + k8);
    long y = *(const long*)(b + line * K + k + k8);
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, acc, 0, 0, 0);
  }
  for (int i = 0; i < 4; ++i) c[(l / 16 * 4 + i) * 16 + line] = acc[i] * scale;
}
