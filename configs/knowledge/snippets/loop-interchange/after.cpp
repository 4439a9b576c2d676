// bench: f(x float[2000x2000], scale float[2000], y out float[2000x2000], rows = 2000, cols = 2000) within 0
void f(const float* x, const float* scale, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      size_t i = static_cast<size_t>(r) * cols + c;
      y[i] = x[i] * scale[c];
    }
}
