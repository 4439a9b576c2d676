typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float4_ __attribute__((ext_vector_type(4)));
// One wavefront: c (16x16, row-major) = a (16xK, row-major) * b (16xK)^T.
__global__ void tile(const _Float16* a, const _Float16* b, float* c, int K) {
  int l = threadIdx.x, line = l % 16, k4 = l / 16 * 4;
  float4_ acc = {0, 0, 0, 0};
  for (int k = 0; k < K; k += 16) {
    half4 x = *(const half4*)(a + line * K + k + k4);
    half4 y = *(const half4*)(b + line * K + k + k4);
    acc = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, acc, 0, 0, 0);
  }
  for (int i = 0; i < 4; ++i) c[(l / 16 * 4 + i) * 16 + line] = acc[i];
}
