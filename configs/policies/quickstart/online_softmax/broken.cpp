#include <cmath>

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* in = x + long(i) * cols;
    float top = -INFINITY, sum = 0;
    for (int j = 0; j < cols; ++j) {
      const float grown = std::max(top, in[j]);
      sum = sum * std::exp(top - grown) + std::exp(in[j] - grown);
      top = grown;
    }
    for (int j = 0; j < cols; ++j) out[j] = std::exp(in[j] - top) / sum;
  }
}
