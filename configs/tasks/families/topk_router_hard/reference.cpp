#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

// Relative error of a weight: a few roundings and that of the exponent's argument, as in
// native/top_k_routing.
extern "C" void reference(const double* scores, int* index, double* weight, double* weight_scale,
                          int tokens, int experts, int k) {
  std::vector<int> order(experts);
  for (long t = 0; t < tokens; ++t) {
    const double* row = scores + t * experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [&](int a, int b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
    const double first = row[order[0]];
    double sum = 0;
    for (int j = 0; j < k; ++j) sum += std::exp(row[order[j]] - first);
    for (int j = 0; j < k; ++j) {
      const double score = row[order[j]];
      const bool there = score > -INFINITY;
      const double value = there ? std::exp(score - first) / sum : 0;
      index[t * k + j] = there ? order[j] : -1;
      weight[t * k + j] = value;
      weight_scale[t * k + j] =
          value > 0 ? value * (6 + std::sqrt(double(k)) + std::fabs(first) + std::fabs(score)) : 0;
    }
  }
}
