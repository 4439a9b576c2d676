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

namespace {

constexpr double beyond = 0.025; // of the subsets, on either side
constexpr double equal_differences = 1e-12;

/// The mean of the differences whose bits are set, 64 to a word.
double subset_mean(std::span<const double> differences, std::span<const uint64_t> bits) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < differences.size(); ++i) {
    if ((bits[i / 64] >> (i % 64) & 1) == 0) continue;
    sum += differences[i];
    ++count;
  }
  return sum / count;
}

std::vector<double> means_of_all_subsets(std::span<const double> differences) {
  std::vector<double> result;
  for (uint64_t bits = 1; bits < uint64_t{1} << differences.size(); ++bits)
    result.push_back(subset_mean(differences, {&bits, 1}));
  return result;
}

/// Each task is in a subset or not, with equal chances; the empty subset is drawn again.
std::vector<double> means_of_drawn_subsets(std::span<const double> differences,
                                           const subset_draws& how) {
  splitmix64 draw{how.seed};
  std::vector<uint64_t> bits((differences.size() + 63) / 64);
  uint64_t last = ~uint64_t{0} >> (63 - (differences.size() - 1) % 64);
  std::vector<double> result;
  while (result.size() < how.count) {
    for (auto& word : bits) word = draw.next();
    bits.back() &= last;
    if (std::any_of(bits.begin(), bits.end(), [](auto x) { return x != 0; }))
      result.push_back(subset_mean(differences, bits));
  }
  return result;
}

void add_interval(paired_difference& to, std::span<const double> differences,
                  const subset_draws& how) {
  if (differences.size() < least_tasks) {
    to.no_interval = "few_tasks";
    return;
  }
  auto [least, most] = std::minmax_element(differences.begin(), differences.end());
  if (*most - *least <= equal_differences) {
    to.no_interval = "no_spread";
    return;
  }
  auto means = differences.size() <= most_tasks_of_all_subsets
                   ? means_of_all_subsets(differences)
                   : means_of_drawn_subsets(differences, how);
  std::sort(means.begin(), means.end());
  auto place = static_cast<size_t>(beyond * static_cast<double>(means.size() + 1));
  place = std::max<size_t>(place, 1) - 1;
  to.low = means[place];
  to.high = means[means.size() - 1 - place];
}

} // namespace

std::optional<paired_difference> compare_pairs(std::span<const paired_value> pairs,
                                               const subset_draws& how) {
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
  add_interval(result, differences, how);
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
