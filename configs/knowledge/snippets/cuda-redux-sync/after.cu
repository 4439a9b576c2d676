// Order-preserving map of floats to unsigned, and its use for a maximum over the warp.
__device__ unsigned ordered(float x) {
  unsigned b = __float_as_uint(x);
  return b & 0x80000000u ? ~b : b | 0x80000000u;
}
__device__ float unordered(unsigned b) {
  return __uint_as_float(b & 0x80000000u ? b & 0x7fffffffu : ~b);
}
__device__ float warp_max(float x) {
  return unordered(__reduce_max_sync(0xffffffffu, ordered(x)));
}
