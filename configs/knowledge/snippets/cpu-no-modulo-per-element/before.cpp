// bench: f(x float[256x1000], w float[1000], b float[1000], y out float[256x1000], rows = 256, cols = 1000) within 1e-6
void f(const float* x, const float* w, const float* b, float* y, int rows, int cols) {
  for (int i = 0; i < rows * cols; ++i) y[i] = x[i] * w[i % cols] + b[i % cols];
}
