typedef int int4_ __attribute__((ext_vector_type(4)));
typedef float float4_ __attribute__((ext_vector_type(4)));
__device__ float4_ buffer_load(int4_ resource, int offset, int scalar_offset, int aux) __asm(
    "llvm.amdgcn.raw.buffer.load.v4f32");
__device__ int4_ resource_of(const void* base, unsigned bytes) {
  unsigned long long p = (unsigned long long)base;
  return {(int)p, (int)(p >> 32 & 0xffff), (int)bytes, 0x00020000}; // raw, 32-bit data
}
__global__ void copy(const float* x, float4_* y, unsigned bytes, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4_ v = buffer_load(resource_of(x, bytes), i * 16, 0, 0); // 0 beyond `bytes`
  if (i < n4) y[i] = v;
}
