#pragma once

#include <caf/actor_system_config.hpp>

namespace kernelmill::commands {

/// The actors of a process that judges and hands off by itself: `serve` and `train`.
struct hosting_system_config : caf::actor_system_config {
  hosting_system_config();
};

} // namespace kernelmill::commands
