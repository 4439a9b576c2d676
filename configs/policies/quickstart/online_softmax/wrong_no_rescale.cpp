#include <algorithm>
#include <cmath>

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* in = x + long(i) * cols;
    float top = -INFINITY, sum = 0;
    for (int j = 0; j < cols; ++j) {
      top = std::max(top, in[j]);
      sum += std::exp(in[j] - top);
    }
    for (int j = 0; j < cols; ++j) y[long(i) * cols + j] = std::exp(in[j] - top) / sum;
  }
}
