#pragma once

// From pairs of batches to what is paid.

#include <optional>
#include <vector>

#include "gpu/timing/overhead.hpp"
#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill::timing {

/// Seconds of a call on either side of a pair.
struct pair_times {
  double baseline = 0;
  double candidate = 0; ///< with what its late inputs are charged

  double log_ratio() const;
};

pair_times times_of(const batch_pair& pair, const overhead& besides, const calibration& before);

/// The pairs of one form, or of one pattern.
struct form_result {
  speedup_interval speedup;
  double baseline_seconds = 0; ///< of a call, medians
  double candidate_seconds = 0;
  double deviation = 0; ///< of one pair's logarithm
  size_t pairs = 0;
};

/// Nothing where there are no pairs.
std::optional<form_result> result_of(const std::vector<pair_times>& pairs);

struct paid_result {
  form_result paid;                       ///< of the pairs that decide; its speedup is what is paid
  std::optional<size_t> slow_pattern;     ///< that is paid alone
  double times_slower = 1;                ///< than the task's own
  std::optional<speedup_interval> single; ///< of calls alone
  bool limited_by_single = false;
  std::optional<double> overlapping; ///< speedup of calls that are kept apart, where less
  bool baseline_slower = false;      ///< than before the candidate came, beyond what is believed
  overhead besides;
};

/// What the pairs of an evaluation pay: the least of the task's own inputs, mixed patterns, a slow
/// pattern alone, and calls alone, of these beyond their own error. Nothing without a pair of the
/// task's own. `confirming`: batches of a pattern before it is paid alone.
std::optional<paid_result> pay(const std::vector<batch_pair>& pairs, const calibration& before,
                               size_t confirming);

/// Whether a batch of several patterns is slower than the task's own beyond noise.
bool seems_slower(const pair_times& mixed, const form_result& own, double margin,
                  const machine_noise& noise);

} // namespace kernelmill::timing
