#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gpu/referee/referee_client.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// Told from the runner's thread, once, before the runner ends.
using quarantine_listener = std::function<void(const std::string& slot, const error& why)>;

/// One GPU or CPU slot: talks to its referee on a thread of its own, one candidate at a time. After
/// a few infrastructure faults in a row it probes the slot; when no referee can work there, the
/// slot is sick, and the runner ends with "slot_quarantined": its work goes to others.
gpu_runner_actor spawn_referee_runner(caf::actor_system& system,
                                      std::shared_ptr<referee_client> referee, std::string slot,
                                      quarantine_listener on_quarantine = {});

} // namespace kernelmill
