#pragma once

// INTERNAL to gpu/torch: what is faster than memory is not believed.

#include "gpu/referee/evaluation.hpp"
#include "gpu/torch/least_time.hpp"

namespace kernelmill {

class device;

/// Compares seconds of a call with the least time for what must be read and written.
void find_impossible_time(double seconds, const must_move& moved, const device& gpu,
                          evaluation_record& into);

} // namespace kernelmill
