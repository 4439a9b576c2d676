// bench: f(x float[4096x40], y out float[4096], rows = 4096, cols = 40) within 1e-5
void f(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r, x += cols) {
    __m512 s = _mm512_setzero_ps();
    int i = 0;
    for (; i + 16 <= cols; i += 16) {
      __m512 v = _mm512_loadu_ps(x + i);
      s = _mm512_fmadd_ps(v, v, s);
    }
    float t = _mm512_reduce_add_ps(s);
    for (; i < cols; ++i) t += x[i] * x[i];
    y[r] = t;
  }
}
