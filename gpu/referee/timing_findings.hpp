#pragma once

// INTERNAL to gpu/referee: what timed calls on a CPU tell about who made them.

#include "gpu/referee/timed_pairs.hpp"

namespace kernelmill {

/// Seconds of a call that the candidate worked on after it was seen to be done, beyond the price of
/// being stopped; told in the note where they are many.
double late_work(measured_run& run, const seen_in_calls& seen);

/// Whoever is called after the candidate must not be slower than whoever is called before it, by
/// more than the candidate is when it is called second itself: what it leaves behind, heat or a
/// lower clock, then slows the baseline. `blocks` have the reference first, then the candidate.
void look_for_a_slowed_baseline(measured_run& run, const std::vector<timed_block>& blocks);

/// Compares with what this machine can do at most.
void compare_with_roofline(measured_run& run);

/// A process worked although it was told to stand still.
void look_for_work_while_stopped(measured_run& run, const seen_in_calls& seen);

} // namespace kernelmill
