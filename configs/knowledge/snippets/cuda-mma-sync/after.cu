// c (16x8, float) += a (16x16, bf16, row-major) * b (16x8, bf16, column-major).
__device__ void mma_16x8x16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__global__ void one_tile(const unsigned* a, const unsigned* b, float* c) {
  unsigned x[4], y[2];
  float z[4] = {};
  for (int i = 0; i < 4; ++i) x[i] = a[threadIdx.x * 4 + i];
  for (int i = 0; i < 2; ++i) y[i] = b[threadIdx.x * 2 + i];
  mma_16x8x16(z, x, y);
  for (int i = 0; i < 4; ++i) c[threadIdx.x * 4 + i] = z[i];
}
