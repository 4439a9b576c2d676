#pragma once

// Loops of a kernel, found in its listing: by where its jumps lead, not by how its source looks.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/inspect/listing.hpp"

namespace kernelmill {

struct code_loop {
  size_t head = 0;          ///< index of the line of the listing where a pass begins
  std::vector<size_t> body; ///< indices of its lines, inner loops and labels included, in order
  uint32_t depth = 1;       ///< 2: within another loop

  bool operator==(const code_loop&) const = default;
};

/// Loops of a kernel that are told: those that begin first.
inline constexpr size_t most_loops = 64;

/// The natural loops, by their heads: each has one way in, and jumps back to it. A block that was
/// moved behind the code and jumps back is none. Nothing where the listing does not tell where a
/// jump leads, or has too many of them.
std::optional<std::vector<code_loop>> loops_of(const kernel_listing& x);

} // namespace kernelmill
