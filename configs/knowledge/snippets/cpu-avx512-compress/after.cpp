// bench: f(x float[65536], y out float[65552], count out int[1], n = 65536) within 0
void f(const float* x, float* y, int* count, int n) {
  float* to = y;
  for (int i = 0; i < n; i += 16) {
    __m512 v = _mm512_loadu_ps(x + i);
    __mmask16 keep = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ);
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps(keep, v));
    to += __builtin_popcount(keep);
  }
  *count = static_cast<int>(to - y);
  std::fill(to, y + n + 16, 0.0f);
}
