#include <numeric>

extern "C" void solve(const float* x, float* y, int n) {
  std::exclusive_scan(x, x + n, y, 0.0f);
}
