// bench: f(x float[256x1000], b float[1000], y out float[256x1000], rows = 256, cols = 1000) within 0
void f(const float* x, const float* b, float* y, int rows, int cols) {
  for (int i = 0; i < rows * cols; ++i) y[i] = x[i] + b[i % cols];
}
