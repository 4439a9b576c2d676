#pragma once

// Puts connections that are made elsewhere, with or without TLS, under CAF's network layer. CAF's
// own TLS reads its certificates for each connection, before it knows the peer, and ends the
// process with an exception where it cannot.

#include <set>
#include <string>

#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>

#include "launch/cluster/front_door.hpp"
#include "launch/cluster/link.hpp"

namespace kernelmill {

/// Makes `published` reachable for the connections that the door lets in; returns the port. The
/// door lasts as long as the network layer.
expected<uint16_t> publish_behind_door(caf::actor_system& system,
                                       const caf::strong_actor_ptr& published,
                                       std::set<std::string> interface, const network_address& at,
                                       std::shared_ptr<const tls_context> tls);

/// Shakes hands with the CAF at the other end of a connection; returns the actor that it publishes
/// there. Blocks for some seconds at most. The port is for messages alone.
caf::expected<caf::strong_actor_ptr> greet(caf::actor_system& system, link_socket link,
                                           uint16_t port, const std::set<std::string>& interface);

} // namespace kernelmill
