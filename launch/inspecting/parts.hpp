#pragma once

// INTERNAL to launch/inspecting: what documents and texts share.

#include <optional>

#include "gpu/profiler/occupancy.hpp"
#include "launch/inspecting/inspected.hpp"

namespace kernelmill::inspecting {

/// By registers and static shared memory, for blocks of `threads`; nothing of an unknown GPU.
std::optional<occupancy> occupancy_for(const inspected& x, const kernel_resources& k,
                                       uint32_t threads);

/// Whether a section is a stage of Triton's.
bool is_stage(const std::string& section);

} // namespace kernelmill::inspecting
