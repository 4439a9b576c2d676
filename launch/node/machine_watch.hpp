#pragma once

// What a machine is doing, for views: cores, load, memory, and its GPUs by NVML.

#include "messages/actors.hpp"

namespace kernelmill {

/// Answers STATUS with the actor "machine" and a child "gpu" for each GPU. It reads when it is
/// asked, on a thread of its own, and opens NVML then for the first time.
status_actor spawn_machine_watch(caf::actor_system& system, std::string hardware);

} // namespace kernelmill
