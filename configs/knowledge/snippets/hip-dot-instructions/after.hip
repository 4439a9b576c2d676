typedef _Float16 half2_ __attribute__((ext_vector_type(2)));
__device__ int dot16(int4 a, int4 b, int s) { // 16 products of int8
  s = __builtin_amdgcn_sdot4(a.x, b.x, s, false);
  s = __builtin_amdgcn_sdot4(a.y, b.y, s, false);
  s = __builtin_amdgcn_sdot4(a.z, b.z, s, false);
  return __builtin_amdgcn_sdot4(a.w, b.w, s, false);
}
__global__ void rows(const int4* w, const int4* x, int* y, int count16) { // one wavefront a row
  int s = 0;
  for (int i = threadIdx.x; i < count16; i += 64)
    s = dot16(w[(size_t)blockIdx.x * count16 + i], x[i], s);
  for (int d = 32; d > 0; d /= 2) s += __shfl_xor(s, d);
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}
__device__ float dot2(half2_ a, half2_ b, float s) {
  return __builtin_amdgcn_fdot2(a, b, s, false);
}
