#include <algorithm>
#include <cmath>

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* in = x + long(i) * cols;
    float top = -INFINITY, sum = 0;
    for (int j = 0; j < cols; ++j) {
      if (in[j] > top) {
        sum = sum * std::exp(top - in[j]) + 1;
        top = in[j];
      } else {
        sum += std::exp(in[j] - top);
      }
    }
    const float factor = 1 / sum;
    for (int j = 0; j < cols; ++j) y[long(i) * cols + j] = std::exp(in[j] - top) * factor;
  }
}
