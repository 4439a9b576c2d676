#pragma once

// The benchmark's figures as plain arithmetic: fast_p, pass@k and means. Where there is nothing to
// average there is no value, rather than a 0 that looks like one.

#include <cstdint>
#include <optional>
#include <span>

namespace kernelmill::reporting {

/// What a figure needs to know of one sample.
struct scored {
  bool correct = false;
  std::optional<double> speedup; ///< time of the baseline / time of the sample; none: not timed
};

/// Returns how many samples are correct and faster than `p` times the baseline. At p = 0 every
/// correct sample counts, timed or not; above it one that was not timed does not.
uint64_t fast_count(std::span<const scored> samples, double p);

/// fast_count() as a share of all samples.
std::optional<double> fast_p(std::span<const scored> samples, double p);

/// The chance that at least one of `k` samples is correct that are drawn without replacement from
/// `n` of which `c` are: 1 - C(n-c, k) / C(n, k), the unbiased estimator.
/// No value unless 1 <= k <= n and c <= n.
std::optional<double> pass_at_k(uint64_t n, uint64_t c, uint64_t k);

/// REQUIRES: every value is above 0.
std::optional<double> geometric_mean(std::span<const double> values);

std::optional<double> mean(std::span<const double> values);

/// Returns the middle value, or the mean of the two in the middle.
std::optional<double> median(std::span<const double> values);

} // namespace kernelmill::reporting
