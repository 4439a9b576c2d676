#pragma once

// INTERNAL to gpu/torch: from the blocks of an evaluation to what its record says of speed.

#include <capnp/common.h>

#include "gpu/referee/evaluation.hpp"
#include "gpu/torch/least_time.hpp"
#include "gpu/torch/torch_blocks.hpp"

namespace kernelmill {

class device;

/// Puts into a record what is paid, and what blocks tell besides. `clock`: the one that was asked
/// for. `gpu` is null on a CPU slot. REQUIRES: a block, and enough of them to know the noise.
void write_speedup(const torch_blocks& blocks, capnp::Text::Reader clock, const device* gpu,
                   evaluation_record& into);

/// Compares with the least time for what must be read and written. REQUIRES: write_speedup().
void find_impossible_time(double seconds, const must_move& moved, const device& gpu,
                          evaluation_record& into);

/// The same, of blocks.
void find_impossible_speed(const torch_blocks& blocks, const must_move& moved, const device& gpu,
                           evaluation_record& into);

} // namespace kernelmill
