// `part` holds 128 steps of k from the tensor core; the scales are those of this block of k.
template <int n>
__device__ void promote(float (&sum)[n], float (&part)[n], float scale_a, float scale_b) {
  float s = scale_a * scale_b;
  for (int i = 0; i < n; ++i) {
    sum[i] = fmaf(part[i], s, sum[i]);
    part[i] = 0;
  }
}
