#pragma once

// The actors of a machine's slots, and their offers to a cluster.

#include <vector>

#include "launch/machine/slots.hpp"
#include "messages/actors.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

/// Spawns a compiler for each build slot, a runner and a profiler for each evaluation slot, and
/// offers them to `cluster`. The log hears of
/// slots that are taken out of service. The caller ends them.
std::vector<status_actor> spawn_slot_actors(caf::actor_system& system, const node_slots& slots,
                                            const cluster_actor& cluster, const logger& log);

} // namespace kernelmill
