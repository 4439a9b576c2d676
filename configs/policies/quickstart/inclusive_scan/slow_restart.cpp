// Every block starts again from the beginning of its predecessors' totals.
extern "C" void solve(const float* x, float* y, int n) {
  constexpr int block = 512;
  for (int first = 0; first < n; first += block) {
    double carry = 0;
    for (int i = first - 1; i >= 0 && i >= first - 4 * block; --i) carry += x[i];
    if (first > 4 * block) carry += y[first - 4 * block - 1];
    for (int i = first; i < first + block && i < n; ++i) y[i] = float(carry += x[i]);
  }
}
