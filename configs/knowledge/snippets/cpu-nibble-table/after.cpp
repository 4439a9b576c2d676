// bench: f(x uint8[32768 < 256], table int8[16 < 120], low out int8[32768], high out int8[32768], n = 32768) within 0
void f(const unsigned char* x, const signed char* table, signed char* low, signed char* high,
       int n) {
  __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  __m512i mask = _mm512_set1_epi8(15);
  for (int i = 0; i < n; i += 64) {
    __m512i v = _mm512_loadu_si512(x + i);
    __m512i hi = _mm512_and_si512(_mm512_srli_epi16(v, 4), mask);
    _mm512_storeu_si512(low + i, _mm512_shuffle_epi8(t, _mm512_and_si512(v, mask)));
    _mm512_storeu_si512(high + i, _mm512_shuffle_epi8(t, hi));
  }
}
