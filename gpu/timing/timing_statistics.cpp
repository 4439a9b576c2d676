#include "gpu/timing/timing_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kernelmill {

namespace {

constexpr size_t fewest_for_order = 4; // blocks
constexpr double least_slowed = 0.01;  // of a speedup

double median_in_place(std::vector<double>& x) {
  auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  if (x.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(x.begin(), middle)) / 2;
}

// Student's t for a two-sided 95 % interval, by degrees of freedom.
constexpr double t_quantile[] = {0, 12.706, 4.303, 3.182, 2.776};

// With fewer values than this, even the full range of them is no 95 % interval.
constexpr size_t fewest_for_ranks = 6;

// How many of the sorted Walsh averages lie outside the interval at each end: the signed-rank
// statistic of n values is at most that, less one, with a probability of up to 2.5 %.
size_t left_out(size_t n) {
  std::vector<double> ways(n * (n + 1) / 2 + 1, 0); // of choosing ranks 1..n with that sum
  ways[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank)
    for (size_t sum = ways.size(); sum-- > rank;) ways[sum] += ways[sum - rank];
  double probability = 0;
  for (size_t sum = 0; sum < ways.size(); ++sum) {
    probability += std::exp2(-static_cast<double>(n)) * ways[sum];
    if (probability > 0.025) return sum;
  }
  return ways.size();
}

std::vector<double> walsh_averages(const std::vector<double>& x) {
  std::vector<double> result;
  result.reserve(x.size() * (x.size() + 1) / 2);
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = i; k < x.size(); ++k) result.push_back((x[i] + x[k]) / 2);
  std::sort(result.begin(), result.end());
  return result;
}

double half_width_by_t(const std::vector<double>& x, double mean) {
  double squares = 0;
  for (double value : x) squares += (value - mean) * (value - mean);
  auto n = static_cast<double>(x.size());
  return t_quantile[x.size() - 1] * std::sqrt(squares / (n - 1) / n);
}

} // namespace

double log_ratio(const timed_block& x) {
  return (std::log(x.reference[0] / x.candidate[0]) + std::log(x.reference[1] / x.candidate[1])) /
         2;
}

std::vector<double> log_ratios(const std::vector<timed_block>& blocks) {
  std::vector<double> result;
  for (const auto& x : blocks) result.push_back(log_ratio(x));
  return result;
}

double median(std::vector<double> x) {
  return x.empty() ? 0 : median_in_place(x);
}

speedup_interval estimate_speedup(const std::vector<timed_block>& blocks) {
  auto ratios = log_ratios(blocks);
  auto averages = walsh_averages(ratios);
  double middle = median(averages);
  if (ratios.size() == 1) return {std::exp(middle), 0, std::numeric_limits<double>::infinity()};
  double low = 0, high = 0;
  if (ratios.size() < fewest_for_ranks) {
    double mean =
        std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size());
    double half = half_width_by_t(ratios, mean);
    low = std::min(middle, mean - half);
    high = std::max(middle, mean + half);
  } else {
    auto outside = left_out(ratios.size());
    low = averages[outside - 1];
    high = averages[averages.size() - outside];
  }
  return {std::exp(middle), std::exp(low), std::exp(high)};
}

speedup_interval widened(const speedup_interval& x, double spread) {
  if (!(x.low > 0) || !std::isfinite(x.high)) return x;
  double more = 1.96 * spread;
  return {x.estimate, x.estimate * std::exp(-std::hypot(std::log(x.estimate / x.low), more)),
          x.estimate * std::exp(std::hypot(std::log(x.high / x.estimate), more))};
}

double baseline_half_width(const std::vector<timed_block>& blocks) {
  std::vector<timed_block> alone;
  for (const auto& x : blocks) alone.push_back({{x.reference[0], x.reference[1]}, {1, 1}});
  return estimate_speedup(alone).relative_half_width();
}

std::optional<double> slowed_by_order(const std::vector<timed_block>& blocks) {
  if (blocks.size() < fewest_for_order) return std::nullopt;
  std::vector<timed_block> second_to_first;
  for (const auto& x : blocks)
    second_to_first.push_back({{x.reference[1], x.candidate[1]}, {x.reference[0], x.candidate[0]}});
  auto slowed = estimate_speedup(second_to_first);
  if (slowed.low < 1 + least_slowed) return std::nullopt;
  return slowed.estimate;
}

double trimmed_mean(std::vector<double> x) {
  if (x.empty()) return 0;
  auto kept = x.begin() + static_cast<std::ptrdiff_t>(x.size() - x.size() / 10);
  std::nth_element(x.begin(), kept - 1, x.end());
  return std::accumulate(x.begin(), kept, 0.0) / static_cast<double>(kept - x.begin());
}

} // namespace kernelmill
