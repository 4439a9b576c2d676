#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

extern "C" void solve(const float* scores, int* index, float* weight, int tokens, int experts, int k) {
  std::vector<int> order(experts);
  for (int t = 0; t < tokens; ++t) {
    const float* row = scores + long(t) * experts;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order, [&](int a, int b) { return row[a] > row[b]; });
    float sum = 0;
    for (int j = 0; j < k; ++j) sum += weight[t * k + j] = std::exp(row[order[j]] - row[order[0]]);
    for (int j = 0; j < k; ++j) { index[t * k + j] = order[j]; weight[t * k + j] /= sum; }
  }
}
