#include <array>

extern "C" void solve(const int* x, int* counts, int n, int bins) {
  std::array<int, bins> local{};
  for (int i = 0; i < n; ++i)
    if (x[i] >= 0 && x[i] < bins) ++local[x[i]];
  for (int b = 0; b < bins; ++b) counts[b] = local[b];
}
