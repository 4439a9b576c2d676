#pragma once

// INTERNAL to gpu/torch: from the blocks of an evaluation to what its record says of speed.

#include "gpu/referee/evaluation.hpp"
#include "gpu/torch/least_time.hpp"
#include "gpu/torch/torch_blocks.hpp"

namespace kernelmill {

class device;

/// Puts into a record what is paid, and what blocks tell besides. REQUIRES: a block, and enough of
/// them to know the noise.
void write_speedup(const torch_blocks& blocks, evaluation_record& into);

/// Compares seconds of a call with the least time for what must be read and written.
void find_impossible_time(double seconds, const must_move& moved, const device& gpu,
                          evaluation_record& into);

} // namespace kernelmill
