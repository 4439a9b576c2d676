#include <numeric>

extern "C" void solve(const float* x, float* y, int n) {
  std::inclusive_scan(x, n, y);
}
