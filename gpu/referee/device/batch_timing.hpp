#pragma once

// INTERNAL to gpu/referee: the timing of libraries and device code on a GPU (decision 0021).

#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

/// Learns what the baseline's batches are while no candidate is there, unless it is known and not
/// old. `clock`: by call both sides are timed with their launches. Call it before a candidate is
/// loaded. Throws device_failure.
std::optional<error> calibrate_baseline(prepared_task& prepared, candidate_pool& pool,
                                        const std::vector<int>& timed_cpus, paid_clock clock);

/// Times the candidate; the baseline is running.
void measure_batches(measured_run& run);

} // namespace kernelmill
