#include <cstring>

extern "C" void solve(const int* x, int* counts, int n, int bins) {
  std::memset(counts, 0, sizeof(int) * bins);
  for (int i = 0; i < n; ++i)
    if (unsigned(x[i]) < unsigned(bins)) ++counts[x[i]];
}
