#include <cmath>

extern "C" void solve(const float* x, const float* gamma, const float* beta, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    auto in = std::span(x + long(i) * cols, cols);
    const float mean = std::accumulate(in.begin(), in.end(), 0.0f) / cols;
    float squares = 0;
    for (float v : in) squares += (v - mean) * (v - mean);
    const float factor = 1 / std::sqrt(squares / cols + epsilon);
    for (int j = 0; j < cols; ++j) y[long(i) * cols + j] = (in[j] - mean) * factor * gamma[j] + beta[j];
  }
}
