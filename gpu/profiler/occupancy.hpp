#pragma once

// How many blocks of a kernel live on a multiprocessor at once, by the limits of its architecture.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelmill {

struct multiprocessor_limits {
  uint32_t warps;
  uint32_t blocks;
  uint32_t registers;
  uint32_t shared_bytes; ///< for all blocks together
};

/// Nothing where the architecture ("sm_90") is not known here.
std::optional<multiprocessor_limits> limits_of(std::string_view architecture);

/// The architecture that a compiler's description names: "sm_90" of "NVRTC 13.0 -arch=sm_90".
std::string architecture_in(std::string_view toolchain);

struct block_needs {
  uint32_t threads = 0;
  uint32_t registers = 0;    ///< a thread
  uint32_t shared_bytes = 0; ///< static and dynamic
};

/// What a block meets first.
enum class occupancy_limit : unsigned char { warps, blocks, registers, shared_memory };

struct occupancy {
  uint32_t blocks = 0; ///< at once on a multiprocessor; 0: the block does not fit
  double share = 0;    ///< of the warps that it can hold
  occupancy_limit limit = occupancy_limit::warps;
};

std::string_view to_string(occupancy_limit x);

/// REQUIRES: x.threads > 0.
occupancy occupancy_of(const multiprocessor_limits& limits, const block_needs& x);

} // namespace kernelmill
