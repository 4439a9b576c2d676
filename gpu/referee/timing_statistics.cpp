#include "gpu/referee/timing_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace kernelmill {

namespace {

constexpr size_t blocks_before_giving_up = 3;
constexpr double hopeless_speedup = 0.5;

uint64_t next_random(uint64_t& state) { // splitmix64
  uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double median_in_place(std::vector<double>& x) {
  auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  if (x.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(x.begin(), middle)) / 2;
}

std::vector<double> log_ratios(const std::vector<timed_block>& blocks) {
  std::vector<double> result;
  for (const auto& x : blocks) result.push_back(log_ratio(x));
  return result;
}

double largest_ratio(const std::vector<timed_block>& blocks) {
  auto ratios = log_ratios(blocks);
  return *std::max_element(ratios.begin(), ratios.end());
}

} // namespace

double log_ratio(const timed_block& x) {
  return (std::log(x.reference[0] / x.candidate[0]) + std::log(x.reference[1] / x.candidate[1])) /
         2;
}

double median(std::vector<double> x) {
  return x.empty() ? 0 : median_in_place(x);
}

speedup_interval bootstrap_speedup(const std::vector<timed_block>& blocks, uint64_t seed,
                                   unsigned resamples) {
  auto ratios = log_ratios(blocks);
  std::vector<double> medians(resamples);
  std::vector<double> sample(ratios.size());
  for (auto& one : medians) {
    for (auto& x : sample) x = ratios[next_random(seed) % ratios.size()];
    one = median_in_place(sample);
  }
  std::sort(medians.begin(), medians.end());
  auto quantile = [&](double q) {
    return medians[static_cast<size_t>(q * static_cast<double>(resamples - 1) + 0.5)];
  };
  return {std::exp(median(ratios)), std::exp(quantile(0.025)), std::exp(quantile(0.975))};
}

std::string stop_reason(const std::vector<timed_block>& blocks, const stopping_rule& rule,
                        double elapsed_seconds, uint64_t seed) {
  if (blocks.empty()) return {};
  if (blocks.size() >= rule.max_blocks) return "the most blocks";
  if (elapsed_seconds >= rule.budget_seconds) return "the time budget is spent";
  if (blocks.size() >= blocks_before_giving_up && blocks.size() <= rule.min_blocks &&
      std::exp(largest_ratio(blocks)) < hopeless_speedup)
    return "slower than half the reference in every block";
  if (blocks.size() < rule.min_blocks) return {};
  if (bootstrap_speedup(blocks, seed, 400).relative_half_width() < rule.half_width)
    return "the interval is narrow enough";
  return {};
}

} // namespace kernelmill
