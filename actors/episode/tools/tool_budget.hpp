#pragma once

// What an episode of mode `tools` has used up: sums over its calls, so that a resumed episode
// counts the same.

#include <cstdint>

#include "messages/lineage.capnp.h"

namespace kernelmill {

struct tool_budget {
  uint32_t steps = 0;
  double gpu_seconds = 0;
  uint32_t hidden = 0; ///< calls whose outcome told something of hidden cases

  void add(wire::CallRecord::Reader x) {
    steps += x.getSteps();
    gpu_seconds += x.getGpuSeconds();
    hidden += x.getHidden() ? 1 : 0;
  }
};

} // namespace kernelmill
