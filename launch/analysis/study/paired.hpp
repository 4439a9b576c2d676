#pragma once

// Statistics of pairs: one value of A and one of B for each task. Intervals come from a bootstrap
// over the tasks, which is seeded, so that the same pairs have the same interval everywhere.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernelmill::study {

/// How intervals are made.
struct bootstrap {
  uint32_t resamples = 10'000;
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
  std::optional<double> low, high;     ///< 95 % interval of the difference; none for one task
};

/// A task's value on both sides.
struct paired_value {
  double a = 0, b = 0;
};

/// Nothing when there is no pair. The interval has the 2.5th and the 97.5th percentile of the means
/// of `how.resamples` draws of as many tasks with replacement, linear between neighbours.
std::optional<paired_difference> compare_pairs(std::span<const paired_value> pairs,
                                               const bootstrap& how);

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
