// bench: f(code uint8[32768 < 16], table float[16], y out float[32768], n = 32768) within 0
void f(const unsigned char* code, const float* table, float* y, int n) {
  __m512 t = _mm512_loadu_ps(table);
  for (int i = 0; i < n; i += 16) {
    __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(code + i));
    _mm512_storeu_ps(y + i, _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(c), t));
  }
}
