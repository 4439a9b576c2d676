#pragma once

// INTERNAL to gpu/referee: what rows on a GPU tell about who made them.

#include "gpu/referee/device/device_rows.hpp"
#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

/// Adds what the audit of a candidate's row found. False when the candidate is rejected for it.
/// `gated`: launches may not have waited for the contents, so wrong results are nobody's fault.
bool note_audit(measured_run& run, const std::function<std::string()>& describe,
                const device_audit& found, bool gated);

/// The GPU was at work when the candidate said that it was done. Nothing is gained by it, because a
/// row counts until its outputs are seen; it is rejected because nobody honest does it.
void look_for_lateness(measured_run& run, const std::vector<row_times>& candidate,
                       const std::vector<row_times>& reference);

/// Somebody else kept the GPU busy while contents were put there. `longer` are seconds beyond what
/// it takes while no candidate is there, `usual`.
void look_for_background_work(measured_run& run, const std::vector<double>& longer, double usual);

/// A process worked although it was told to stand still: it could slow the baseline. `worked` are
/// seconds of a processor, each between two rows of the candidate; who stands still has none.
void look_for_work_while_stopped(measured_run& run, const std::vector<double>& worked);

/// Compares with what this GPU can do at most; `calls` is of a row.
void compare_with_roofline(measured_run& run, double calls);

/// Device code is timed by events of our own process too: both clocks must agree.
void compare_clocks(measured_run& run, const std::vector<row_times>& gated, double call_seconds);

} // namespace kernelmill
