#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

extern "C" void solve(const float* scores, int* index, float* weight, int tokens, int experts,
                      int k) {
  std::vector<int> order(experts);
  for (long t = 0; t < tokens; ++t) {
    const float* row = scores + t * experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [&](int a, int b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
    float sum = 0;
    for (int j = 0; j < k; ++j) {
      weight[t * k + j] = std::exp(row[order[j]] - row[order[0]]);
      sum += weight[t * k + j];
      index[t * k + j] = row[order[j]] > -INFINITY ? order[j] : -1;
    }
    for (int j = 0; j < k; ++j) weight[t * k + j] /= sum;
  }
}
