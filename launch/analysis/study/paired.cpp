#include "launch/analysis/study/paired.hpp"

#include <algorithm>
#include <cmath>

namespace kernelmill::study {

uint64_t splitmix64::next() {
  auto z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t splitmix64::below(uint64_t n) {
  __extension__ using wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<wide>(next()) * n) >> 64);
}

double quantile(std::span<const double> sorted, double q) {
  auto at = q * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<size_t>(at);
  auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::optional<paired_difference> compare_pairs(std::span<const paired_value> pairs,
                                               const bootstrap& how) {
  if (pairs.empty()) return std::nullopt;
  auto n = static_cast<double>(pairs.size());
  paired_difference result;
  result.tasks = pairs.size();
  std::vector<double> differences;
  for (const auto& x : pairs) {
    result.a += x.a / n;
    result.b += x.b / n;
    differences.push_back(x.b - x.a);
    result.difference += (x.b - x.a) / n;
  }
  if (pairs.size() < 2 || how.resamples == 0) return result;
  splitmix64 draw{how.seed};
  std::vector<double> means(how.resamples);
  for (auto& mean : means) {
    double sum = 0;
    for (size_t i = 0; i < differences.size(); ++i)
      sum += differences[draw.below(differences.size())];
    mean = sum / n;
  }
  std::sort(means.begin(), means.end());
  result.low = quantile(means, 0.025);
  result.high = quantile(means, 0.975);
  return result;
}

double win_count::p() const {
  auto n = static_cast<double>(wins + losses);
  if (wins + losses == 0) return 1;
  double sum = 0;
  for (uint64_t i = 0; i <= std::min(wins, losses); ++i) {
    auto k = static_cast<double>(i);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                    n * std::log(2.0));
  }
  return std::min(1.0, 2 * sum);
}

} // namespace kernelmill::study
