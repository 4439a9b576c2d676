#pragma once

// Statistics of pairs: one value of A and one of B for each task. An interval comes from the means
// of subsets of the tasks (Hartigan, 1969): where A and B are as good, a task's difference is as
// likely below as above zero by the same amount, and then the true difference lies with the same
// chance between any two neighbours of the sorted means of all subsets. So the coverage holds for
// six tasks as for sixty, which a bootstrap's does not. Draws are seeded: equal pairs have equal
// intervals.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernelmill::study {

/// Fewer tasks cannot show a difference at 95 %: when A and B are as good, all of five tasks favour
/// the same run in 2 of 32 cases.
constexpr uint64_t least_tasks = 6;

/// Of up to so many tasks all subsets are taken, of more a random choice.
constexpr uint64_t most_tasks_of_all_subsets = 13;

struct subset_draws {
  uint32_t count = 10'000;
  uint64_t seed = 1;
};

/// SplitMix64, and numbers below n as the upper half of its product with n.
class splitmix64 {
public:
  explicit splitmix64(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t n);

private:
  uint64_t state_;
};

/// What tasks differ by, in the mean: B minus A.
struct paired_difference {
  uint64_t tasks = 0;
  double a = 0, b = 0, difference = 0; ///< means over the tasks
  std::optional<double> low, high;     ///< 95 % interval of the difference
  const char* no_interval = nullptr;   ///< why there is none: "few_tasks", "no_spread"
};

/// A task's value on both sides.
struct paired_value {
  double a = 0, b = 0;
};

/// Nothing when there is no pair. Of the sorted means of the differences of n subsets, the interval
/// has those with 0.025 (n + 1), rounded down, less one beyond them on either side. There is none
/// of fewer than `least_tasks`, nor of differences that are all equal: they do not say how far
/// others would differ.
std::optional<paired_difference> compare_pairs(std::span<const paired_value> pairs,
                                               const subset_draws& how);

/// In how many tasks B is better, worse, and neither.
struct win_count {
  uint64_t wins = 0, losses = 0, ties = 0;

  /// Two-sided sign test: how likely wins and losses are that far apart when both are as likely.
  /// 1 when there is neither.
  double p() const;
};

/// Value at share `q` of sorted values, linear between neighbours. REQUIRES: there is a value.
double quantile(std::span<const double> sorted, double q);

} // namespace kernelmill::study
