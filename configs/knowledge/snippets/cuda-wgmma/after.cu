// A K-major tile with 128-byte rows and 128-byte swizzle: 8 rows are 1024 bytes apart.
__device__ uint64_t descriptor(const void* tile) {
  uint64_t at = __cvta_generic_to_shared(tile);
  return ((at & 0x3ffff) >> 4) | (1ull << 16) | ((1024ull >> 4) << 32) | (1ull << 62);
}
// d (64x16, float) += a (64x64, bf16) * b (16x64, bf16)^T; all 128 threads call it.
__device__ void product(float (&d)[8], const void* a, const void* b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int k = 0; k < 4; ++k)
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
          "+f"(d[7])
        : "l"(descriptor(a) + 2 * k), "l"(descriptor(b) + 2 * k));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
__global__ void use(float* y) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  float d[8] = {};
  product(d, tiles, tiles + 64 * 128);
  for (int i = 0; i < 8; ++i) y[threadIdx.x * 8 + i] = d[i];
}
