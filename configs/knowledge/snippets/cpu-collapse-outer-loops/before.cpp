// bench: f(x float[1x256x2048], y out float[1x256], batch = 1, rows = 256, cols = 2048) within 1e-4
void f(const float* x, float* y, int batch, int rows, int cols) {
#pragma omp parallel for schedule(static)
  for (int b = 0; b < batch; ++b)
    for (int r = 0; r < rows; ++r) {
      const float* row = x + (static_cast<size_t>(b) * rows + r) * cols;
      float s = 0;
#pragma omp simd reduction(+ : s)
      for (int c = 0; c < cols; ++c) s += 1 / (1 + row[c] * row[c]);
      y[b * rows + r] = s;
    }
}
