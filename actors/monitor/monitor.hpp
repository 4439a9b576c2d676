#pragma once

#include <vector>

#include "messages/actors.hpp"

namespace kernelmill {

struct gathering_monitor_state {
  std::vector<status_actor> observed;

  static inline const char* name = "gathering-monitor";
};

/// Asks every observed actor for its snapshot; one that is silent for two seconds is shown as such.
monitor_actor::behavior_type
gathering_monitor(monitor_actor::stateful_pointer<gathering_monitor_state> self);

} // namespace kernelmill
