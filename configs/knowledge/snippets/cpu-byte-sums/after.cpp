// bench: f(x uint8[65536 < 256], y out int64[1], n = 65536) within 0
void f(const unsigned char* x, long long* y, int n) {
  __m512i s = _mm512_setzero_si512(), zero = s;
  for (int i = 0; i < n; i += 64)
    s = _mm512_add_epi64(s, _mm512_sad_epu8(_mm512_loadu_si512(x + i), zero));
  y[0] = _mm512_reduce_add_epi64(s);
}
