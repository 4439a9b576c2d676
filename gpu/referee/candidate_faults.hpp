#pragma once

// INTERNAL to gpu/referee: how faults of a candidate are told that differ between CPU and GPU.

#include <cstdint>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// Of the host's memory, which a candidate on a GPU takes too: pinned, or by new.
error out_of_memory_fault(uint64_t limit_bytes, bool on_gpu);

/// What the driver said when the context was lost: "finish a call (CUDA_ERROR_...)".
error device_fault(const std::string& said);

} // namespace kernelmill
