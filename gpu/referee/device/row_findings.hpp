#pragma once

// INTERNAL to gpu/referee: what batches on a GPU tell about who made them.

#include <functional>
#include <string>

#include "gpu/referee/device/device.hpp"
#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

/// Adds what the audit of a candidate's batch found. False when the candidate is rejected for it.
/// `gated`: launches may not have waited for the contents, so wrong results are nobody's fault.
bool note_audit(measured_run& run, const std::function<std::string()>& describe,
                const device_audit& found, bool gated);

/// Compares with what this GPU can do at most; `calls` is of a batch.
void compare_with_roofline(measured_run& run, double calls);

} // namespace kernelmill
