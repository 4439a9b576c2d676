// bench: f(a uint8[32768 < 256], b uint8[32768 < 256], y out int64[1], bytes = 32768) within 0
void f(const unsigned char* a, const unsigned char* b, long long* y, int bytes) {
  __m512i s = _mm512_setzero_si512();
  for (int i = 0; i < bytes; i += 64) {
    __m512i x = _mm512_xor_si512(_mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i));
    s = _mm512_add_epi64(s, _mm512_popcnt_epi64(x));
  }
  y[0] = 8LL * bytes - 2 * _mm512_reduce_add_epi64(s);
}
