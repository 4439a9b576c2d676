#pragma once

// The baseline's batches before a candidate is there.

#include <functional>
#include <optional>
#include <vector>

#include "gpu/timing/overhead.hpp"

namespace kernelmill::timing {

struct known_baseline {
  unsigned calls = 1; ///< of a batch of many
  calibration before;
};

/// Makes a batch of so many calls at most; false when that cannot be, for good.
using make_baseline =
    std::function<bool(const batch_order& order, unsigned calls, batch_sample& into)>;

/// How many calls make a batch of `batch_seconds`. REQUIRES: most >= 1.
unsigned calls_of(double call_seconds, double batch_seconds, unsigned most);

/// Finds how long the baseline's calls take, and what a batch takes besides. Nothing when a batch
/// could not be made. A batch has `least` calls, however long they take.
std::optional<known_baseline> learn_baseline(const make_baseline& make, double batch_seconds,
                                             unsigned most, unsigned least = 1);

} // namespace kernelmill::timing
