#pragma once

// INTERNAL to gpu/referee: the second design of the timing on GPUs (decision 0021).
// KERNELMILL_TIMING=batches chooses it, until the first design is gone.

#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

bool uses_batches();

/// Learns what the baseline's batches are while no candidate is there, unless it is known and not
/// old. Call it before a candidate is loaded. Throws device_failure.
std::optional<error> calibrate_baseline(prepared_task& prepared, candidate_pool& pool,
                                        const std::vector<int>& timed_cpus);

/// Times the candidate; the baseline is running.
void measure_batches(measured_run& run);

} // namespace kernelmill
