// bench: f(x float[256x1000], b float[1000], y out float[256x1000], rows = 256, cols = 1000) within 0
void f(const float* x, const float* b, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* from = x + static_cast<size_t>(r) * cols;
    float* to = y + static_cast<size_t>(r) * cols;
    for (int c = 0; c < cols; ++c) to[c] = from[c] + b[c];
  }
}
