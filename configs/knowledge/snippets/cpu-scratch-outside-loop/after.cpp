// bench: f(x float[2048x64], y out float[2048x64], rows = 2048, cols = 64) within 1e-6
void f(const float* x, float* y, int rows, int cols) {
  std::vector<float> scratch(cols);
  for (int r = 0; r < rows; ++r, x += cols, y += cols) {
    for (int c = 0; c < cols; ++c) scratch[c] = x[c] * x[c];
    for (int c = 0; c < cols; ++c) y[c] = scratch[c] + scratch[cols - 1 - c];
  }
}
