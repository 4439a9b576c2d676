#include <cmath>

extern "C" void solve(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = 0.5f * x[i] * std::erfc(-0.70710678f * x[i]);
}
