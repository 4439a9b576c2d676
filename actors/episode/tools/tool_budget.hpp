#pragma once

// What an episode of mode `tools` has used up: sums over its calls, so that a resumed episode
// counts the same.

#include <cstdint>

namespace kernelmill {

struct tool_budget {
  uint32_t steps = 0;
  double gpu_seconds = 0;
  uint32_t hidden = 0; ///< calls whose outcome told something of hidden cases

  void add(uint32_t more_steps, double more_seconds, bool is_hidden) {
    steps += more_steps;
    gpu_seconds += more_seconds;
    hidden += is_hidden ? 1 : 0;
  }
};

} // namespace kernelmill
