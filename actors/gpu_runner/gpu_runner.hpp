#pragma once

#include <memory>
#include <string>

#include "gpu/referee/referee_client.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct referee_runner_state;

/// One GPU or CPU slot: talks to its referee on a thread of its own, one candidate at a time.
gpu_runner_actor::behavior_type
referee_runner(gpu_runner_actor::stateful_pointer<referee_runner_state> self,
               std::shared_ptr<referee_client> referee, std::string slot);

} // namespace kernelmill
