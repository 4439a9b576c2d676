#include <algorithm>

extern "C" void solve(const float* x, float* y, int rows, int cols, int window) {
  for (long i = 0; i < rows; ++i) {
    for (long t = 0; t < cols; ++t) {
      const long first = std::max(t + 1 - window, 0L);
      float sum = 0;
      for (long s = first; s <= t; ++s) sum += x[i * cols + s];
      y[i * cols + t] = sum / float(t + 1 - first);
    }
  }
}
