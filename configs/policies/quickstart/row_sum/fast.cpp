extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* row = x + long(i) * cols;
    // Four independent vectors hide the latency of the addition.
    float a = 0, b = 0, c = 0, d = 0;
    const int quarter = cols / 4;
#pragma omp simd reduction(+ : a, b, c, d)
    for (int j = 0; j < quarter; ++j) {
      a += row[j];
      b += row[j + quarter];
      c += row[j + 2 * quarter];
      d += row[j + 3 * quarter];
    }
    for (int j = 4 * quarter; j < cols; ++j) a += row[j];
    y[i] = (a + b) + (c + d);
  }
}
