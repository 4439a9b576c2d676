#pragma once

// INTERNAL to gpu/referee: the single measurements behind an interval, as a record keeps them.

#include <cstddef>
#include <vector>

#include "gpu/referee/evaluation.hpp"
#include "gpu/timing/controller.hpp"

namespace kernelmill {

/// What a record keeps of them at most.
inline constexpr size_t most_timed_pairs = 256;

/// Seconds of a call on either side, of the pairs that the interval was made of, in order: those of
/// the task's own inputs, or of the pattern that is paid alone.
std::vector<both_seconds> deciding_pairs(const std::vector<timing::batch_pair>& pairs,
                                         const timing::paid_result& paid,
                                         const timing::calibration& before);

/// `count` of `from` numbers, in order and as far apart as each other, 0 among them; all of fewer.
std::vector<size_t> evenly_thinned(size_t from, size_t count);

} // namespace kernelmill
