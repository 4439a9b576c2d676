#pragma once

// The door of a node: it takes jobs from the head, puts what they bring on the shelf, and sends
// them to the node's own cluster actor, which spreads them over its slots. It trusts the head, but
// no name before the content behind it was checked.

#include <memory>
#include <string>

#include "actors/cluster/parcels.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// On a thread of its own, since it reads and writes files. It ends when it has been told to drain
/// and nothing is left to answer.
///
/// `monitor` answers for the node's own actors when a head asks for the node's STATUS. Without one
/// the gate answers for itself alone.
/// `own_thread` is false only under the deterministic scheduler.
node_gate_actor spawn_node_gate(caf::actor_system& system, std::string name, cluster_actor slots,
                                std::shared_ptr<const parcel_shelf> shelf,
                                status_actor monitor = {}, bool own_thread = true);

} // namespace kernelmill
