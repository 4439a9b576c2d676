// bench: f(x uint8[16384 < 256], w int8[16384 < 127], y out int[1], n = 16384) within 0
void f(const unsigned char* x, const signed char* w, int* y, int n) {
  __m512i a = _mm512_setzero_si512(), b = a;
  for (int i = 0; i < n; i += 128) {
    a = _mm512_dpbusd_epi32(a, _mm512_loadu_si512(x + i), _mm512_loadu_si512(w + i));
    b = _mm512_dpbusd_epi32(b, _mm512_loadu_si512(x + i + 64), _mm512_loadu_si512(w + i + 64));
  }
  y[0] = _mm512_reduce_add_epi32(_mm512_add_epi32(a, b));
}
