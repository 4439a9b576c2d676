#pragma once

// What a batch takes besides its calls: the GPU's turn to the process, the notification, the look
// at the outputs. Calls are queued before the inputs are released, so it is the machine's and the
// same for every program. It grows a little with the length of a batch, because the GPU's time
// slices do.

#include <vector>

#include "gpu/timing/batch.hpp"
#include "gpu/timing/thresholds.hpp"

namespace kernelmill::timing {

/// Seconds of a batch besides calls are `fixed + growth * seconds of calls`.
struct overhead {
  double fixed = 0;
  double growth = 0;

  /// Seconds of the calls of a batch.
  double calls(const batch_sample& x) const;
};

/// From batches of the baseline, of one call and of many, whose events are believed.
/// REQUIRES: at least one.
overhead fit_overhead(const std::vector<batch_sample>& baseline);

/// `now`, where a candidate is there who could make it longer, but no more than `before` allows.
overhead believed(const overhead& now, const overhead& before);

/// What is known of the baseline before a candidate is loaded.
struct calibration {
  overhead besides;
  double call = 0;           ///< least seconds of a call
  double call_alone = 0;     ///< the same of one alone; 0: not known
  std::vector<double> fills; ///< by pattern: seconds that the fill of a long batch seldom exceeds
  double fill_single = 0;    ///< the same of one call
  machine_noise noise;

  /// Seconds that the fill of a batch seldom exceeds: its patterns have equal parts of it.
  double fill_of(const batch_order& order) const;
};

/// REQUIRES: batches of one call and of many.
calibration calibrated(const std::vector<batch_sample>& baseline);

} // namespace kernelmill::timing
