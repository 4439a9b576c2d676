// Where the 16-byte chunk of a row lies, in halves. A row has 64 halves, that is 8 chunks.
__device__ int swizzled(int row, int chunk) { return row * 64 + ((chunk ^ (row % 8)) * 8); }
// The 16x16 fragment whose first row and chunk these are; every lane names one row of one 8x8 block.
__device__ void load_a(unsigned (&a)[4], const __half* tile, int row, int chunk) {
  int lane = threadIdx.x % 32;
  const __half* p = tile + swizzled(row + lane % 16, chunk + lane / 16);
  unsigned at = (unsigned)__cvta_generic_to_shared(p);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(at));
}
__global__ void use(const __half* x, unsigned* y) {
  __shared__ __align__(128) __half tile[16 * 64];
  for (int i = threadIdx.x; i < 128; i += 32)
    *(uint4*)&tile[swizzled(i / 8, i % 8)] = ((const uint4*)x)[i];
  __syncwarp();
  unsigned a[4];
  load_a(a, tile, 0, 0);
  for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = a[i];
}
