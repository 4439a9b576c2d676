#pragma once

// From the times of interleaved calls to a speedup with an interval. One block is reference,
// candidate, candidate, reference: drift that is linear in time cancels within it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kernelmill {

struct timed_block {
  double reference[2]; ///< seconds
  double candidate[2];
  /// Its place among all blocks of an evaluation, by which it is known what the machine did at that
  /// moment; equal where nobody says.
  size_t place = 0;
};

struct speedup_interval {
  double estimate = 0; ///< Hodges-Lehmann: median of the averages of all pairs of blocks
  double low = 0;      ///< 95 % interval, two-sided
  double high = 0;

  double relative_half_width() const { return estimate > 0 ? (high - low) / 2 / estimate : 0; }
};

/// Mean of the logarithms of the block's two ratios.
double log_ratio(const timed_block& x);

std::vector<double> log_ratios(const std::vector<timed_block>& blocks);

double median(std::vector<double> x);

inline constexpr double of_a_median = 1.2533; ///< its standard error, by that of a mean
inline constexpr double of_a_normal = 1.4826; ///< its deviation, by the median of what it is off

/// From reference time / candidate time of each block, in logarithms. The interval comes from the
/// signed-rank distribution, which from 12 blocks on one wild block does not move, and from
/// Student's t when there are fewer than 6 blocks. Stopping as soon as the interval is narrow costs
/// it 1 to 2 of its 95 % (timing_statistics_test simulates it). One block says nothing: 0 to
/// infinity. REQUIRES: at least one block.
speedup_interval estimate_speedup(const std::vector<timed_block>& blocks);

/// The same interval, wider by what one process differs from the next that runs the same code:
/// `spread`, the standard deviation of the logarithm of the speedup.
speedup_interval widened(const speedup_interval& x, double spread);

/// By how much the speedup of these blocks is too large because the reference is slower when it is
/// called second, beyond what the candidate is slower by then; nothing where that may be noise.
/// Of each block, the first pair has the reference first, the second one the candidate.
std::optional<double> slowed_by_order(const std::vector<timed_block>& blocks);

/// Half of the relative width of the interval that these blocks would have if the candidate always
/// took the same time: what the baseline's own noise makes of it. REQUIRES: at least one block.
double baseline_half_width(const std::vector<timed_block>& blocks);

/// Mean of all but the largest tenth: a single one has many causes.
double trimmed_mean(std::vector<double> x);

} // namespace kernelmill
