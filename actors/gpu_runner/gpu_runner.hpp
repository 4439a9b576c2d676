#pragma once

#include <memory>
#include <string>

#include "gpu/referee/referee_client.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// One GPU or CPU slot: talks to its referee on a thread of its own, one candidate at a time.
gpu_runner_actor spawn_referee_runner(caf::actor_system& system,
                                      std::shared_ptr<referee_client> referee, std::string slot);

} // namespace kernelmill
