// bench: f(x float[33554432], y out float[33554432], n = 33554432) within 1e-6
void f(const float* x, float* y, int n) { // y is aligned to 64 bytes, n a multiple of 16
  __m512 two = _mm512_set1_ps(2);
  for (int i = 0; i < n; i += 16)
    _mm512_stream_ps(y + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), two));
  _mm_sfence();
}
