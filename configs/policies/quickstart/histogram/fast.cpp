#include <vector>

// Four private histograms break the chain through memory when neighbours are equal; elements out of
// range go to one more bin, so that the loop has no branch to mispredict.
extern "C" void solve(const int* x, int* counts, int n, int bins) {
  const long stride = bins + 1;
  std::vector<int> local(4 * stride);
  int* table = local.data();
  const auto place = [bins](int value) { return unsigned(value) < unsigned(bins) ? value : bins; };
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    ++table[place(x[i])];
    ++table[stride + place(x[i + 1])];
    ++table[2 * stride + place(x[i + 2])];
    ++table[3 * stride + place(x[i + 3])];
  }
  for (; i < n; ++i) ++table[place(x[i])];
  for (int b = 0; b < bins; ++b)
    counts[b] = table[b] + table[stride + b] + table[2 * stride + b] + table[3 * stride + b];
}
