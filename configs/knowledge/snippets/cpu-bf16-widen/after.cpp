// bench: f(x uint16[16384 < 16512], w uint16[16384 < 16512], y out float[1], n = 16384) within 1e-4
static __m512 widen(const unsigned short* p) {
  __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
void f(const unsigned short* x, const unsigned short* w, float* y, int n) {
  __m512 a = _mm512_setzero_ps(), b = a;
  for (int i = 0; i < n; i += 32) {
    a = _mm512_fmadd_ps(widen(x + i), widen(w + i), a);
    b = _mm512_fmadd_ps(widen(x + i + 16), widen(w + i + 16), b);
  }
  y[0] = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
}
