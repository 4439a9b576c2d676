#include "launch/analysis/report/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kernelmill::reporting {

uint64_t fast_count(std::span<const scored> samples, double p) {
  auto counts = [p](const scored& x) {
    return x.correct && (p <= 0 || (x.speedup && *x.speedup > p));
  };
  return static_cast<uint64_t>(std::count_if(samples.begin(), samples.end(), counts));
}

std::optional<double> fast_p(std::span<const scored> samples, double p) {
  if (samples.empty()) return std::nullopt;
  return static_cast<double>(fast_count(samples, p)) / static_cast<double>(samples.size());
}

std::optional<double> pass_at_k(uint64_t n, uint64_t c, uint64_t k) {
  if (k < 1 || k > n || c > n) return std::nullopt;
  if (n - c < k) return 1.0;
  // C(n-c, k) / C(n, k) without the large numbers.
  double none = 1;
  for (auto i = n - c + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - none;
}

std::optional<double> geometric_mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  // Logarithms: a product of a few hundred speedups leaves the range of a double.
  double sum = 0;
  for (auto x : values) sum += std::log(x);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::optional<double> mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  auto half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

} // namespace kernelmill::reporting
