#pragma once

// INTERNAL to gpu/referee: whether other programs disturbed a timed call. Such a call is made
// again, so a candidate must not be able to make one of its own look so.

#include "gpu/referee/slot.hpp"

namespace kernelmill {

/// Whether a call waited for a core that somebody else had, for longer than noise, or others kept
/// the process from coming to rest. To wait costs no processor time: who waits for its own threads
/// has them work meanwhile. So what a call took of processors beyond `least_cpu`, the least of that
/// process's calls so far, is taken off what it waited.
bool was_disturbed(const call_measure& x, double least_cpu);

/// Whether a process worked on after it was told to stop, instead of waiting for a core to do so.
bool would_not_stop(const call_measure& x);

} // namespace kernelmill
