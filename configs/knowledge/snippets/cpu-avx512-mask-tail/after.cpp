// bench: f(x float[4096x40], y out float[4096], rows = 4096, cols = 40) within 1e-5
void f(const float* x, float* y, int rows, int cols) {
  __mmask16 rest = static_cast<__mmask16>((1u << (cols & 15)) - 1);
  for (int r = 0; r < rows; ++r, x += cols) {
    __m512 s = _mm512_setzero_ps();
    int i = 0;
    for (; i + 16 <= cols; i += 16) {
      __m512 v = _mm512_loadu_ps(x + i);
      s = _mm512_fmadd_ps(v, v, s);
    }
    __m512 v = _mm512_maskz_loadu_ps(rest, x + i);
    y[r] = _mm512_reduce_add_ps(_mm512_fmadd_ps(v, v, s));
  }
}
