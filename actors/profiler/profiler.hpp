#pragma once

#include "messages/actors.hpp"

namespace kernelmill {

struct counting_profiler_state {
  // Not the handle first: C++20 would initialize it with the actor's own pointer, for CAF asks
  // whether State(self) compiles, and an aggregate says yes.
  uint64_t done = 0, faults = 0;
  uint32_t busy = 0;
  gpu_runner_actor runner;

  static inline const char* name = "counting-profiler";
};

/// Lets a runner count instead of time, in its exclusive slot, and reads a card from the counts.
profiler_actor::behavior_type
counting_profiler(profiler_actor::stateful_pointer<counting_profiler_state> self,
                  gpu_runner_actor runner);

} // namespace kernelmill
