// bench: f(x float[4096], z float[4096], y out float[1], n = 4096) within 1e-4
void f(const float* x, const float* z, float* y, int n) {
  __m256 s[4] = {};
  for (int i = 0; i < n; i += 32)
    for (int k = 0; k < 4; ++k)
      s[k] = _mm256_fmadd_ps(_mm256_loadu_ps(x + i + 8 * k), _mm256_loadu_ps(z + i + 8 * k), s[k]);
  alignas(32) float t[8];
  _mm256_store_ps(t, _mm256_add_ps(_mm256_add_ps(s[0], s[1]), _mm256_add_ps(s[2], s[3])));
  y[0] = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
}
