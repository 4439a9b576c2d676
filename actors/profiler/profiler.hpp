#pragma once

#include "messages/actors.hpp"

namespace kernelmill {

/// A struct, because CAF 0.17.6 refuses to spawn a function whose only argument is a typed handle.
struct profiler_slot {
  gpu_runner_actor runner;
};

struct counting_profiler_state {
  gpu_runner_actor runner;
  uint64_t done = 0, faults = 0;
  uint32_t busy = 0;

  static inline const char* name = "counting-profiler";
};

/// Lets a runner count instead of time, in its exclusive slot, and reads a card from the counts.
profiler_actor::behavior_type
counting_profiler(profiler_actor::stateful_pointer<counting_profiler_state> self,
                  profiler_slot slot);

} // namespace kernelmill
