#pragma once

// INTERNAL to gpu/referee: what the rows of a baseline are while no candidate is there.

#include <vector>

#include "gpu/referee/prepared_task.hpp"

namespace kernelmill {

/// Whether the reference on the GPU agrees with the host's; found out once. Nothing when it does.
std::optional<error> agree_with_host(prepared_task& prepared);

/// Learns it, unless it is known and not old. Call it before a candidate is loaded. Throws
/// device_failure. `timed_cpus`: those of machine.
std::optional<error> learn_quiet_baseline(prepared_task& prepared, candidate_pool& pool,
                                          const std::vector<int>& timed_cpus);

} // namespace kernelmill
