struct max_sum {
  float m, l; // maximum, and the sum of exp2(x - m)
};
__device__ max_sum merged(max_sum a, max_sum b) {
  float m = fmaxf(a.m, b.m);
  if (m == -INFINITY) return {m, 0}; // nothing came so far
  return {m, a.l * exp2f(a.m - m) + b.l * exp2f(b.m - m)};
}
__device__ max_sum warp_merged(max_sum a) {
  for (int d = 16; d > 0; d /= 2) {
    max_sum b{__shfl_xor_sync(0xffffffffu, a.m, d), __shfl_xor_sync(0xffffffffu, a.l, d)};
    a = merged(a, b);
  }
  return a;
}
