// bench: f(x float[8192], y out float[8192], n = 8192) within 1e-5
void f(const float* x, float* y, int n) {
  __m512 half = _mm512_set1_ps(0.5f), three_halves = _mm512_set1_ps(1.5f);
  for (int i = 0; i < n; i += 16) {
    __m512 v = _mm512_loadu_ps(x + i);
    v = _mm512_fmadd_ps(v, v, _mm512_set1_ps(1e-3f));
    __m512 e = _mm512_rsqrt14_ps(v);
    __m512 c = _mm512_mul_ps(_mm512_mul_ps(half, v), _mm512_mul_ps(e, e));
    _mm512_storeu_ps(y + i, _mm512_mul_ps(e, _mm512_sub_ps(three_halves, c)));
  }
}
