#pragma once

// INTERNAL to gpu/referee: whether other programs disturbed a timed call. Such a call is made
// again, so a candidate must not be able to make one of its own look so.

#include <cstddef>

#include "gpu/referee/slot.hpp"

namespace kernelmill {

/// Whether a call waited for a core that somebody else had, for longer than noise, or others kept
/// the process from coming to rest. To wait costs no processor time: who waits for its own threads
/// has them work meanwhile. So what a call took of processors beyond `least_cpu`, the least of that
/// process's calls so far, is taken off what it waited.
bool was_disturbed(const call_measure& x, double least_cpu);

/// Which of the candidate's calls that waited for a core are made again. Who sleeps for a moment on
/// a busy core waits for it, at no cost, and so could be rid of each call that it found slow: of
/// copies of a baseline the luckiest calls alone would count. So it is excused as often as the
/// baseline waited, and what chance adds.
class excused_waits {
public:
  /// Takes note of a pair: whether the baseline's call waited, and the candidate's. Returns whether
  /// the candidate's did and is not to count for it.
  bool excuses(bool baseline, bool candidate);

private:
  size_t baseline_ = 0;
  size_t candidate_ = 0;
};

/// Whether a process worked on after it was told to stop, instead of waiting for a core to do so.
bool would_not_stop(const call_measure& x);

} // namespace kernelmill
