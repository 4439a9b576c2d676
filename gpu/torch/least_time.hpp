#pragma once

// The least time of a call by what its GPU's memory must move.

#include <algorithm>

namespace kernelmill {

struct must_move {
  double bytes = 0;        ///< of inputs and outputs
  double weight_bytes = 0; ///< of parameters, as small as they can be packed without loss
  double read_rate =
      0; ///< bytes a second that reading the largest parameter was seen to get; 0: nobody knows
};

/// By how much a memory may be faster than its data sheet says, or than a plain sum reads.
inline constexpr double rate_margin = 1.1;
/// Of the data sheet, what no memory at rest stays below: a GPU that others used when the rate was
/// measured must accuse nobody.
inline constexpr double least_rate_share = 0.85;

/// Seconds. `sheet_rate`: bytes a second by the data sheet; 0: nobody knows. Only parameters are
/// held against the measured rate, which is a rate of reading.
inline double least_seconds(const must_move& x, double sheet_rate) {
  if (sheet_rate <= 0) return 0;
  double most = sheet_rate * rate_margin;
  double reading = x.read_rate > 0
                       ? std::clamp(x.read_rate * rate_margin, sheet_rate * least_rate_share, most)
                       : most;
  return std::max(0.0, x.bytes) / most + std::max(0.0, x.weight_bytes) / reading;
}

} // namespace kernelmill
