#pragma once

// Connections between the machines of a cluster: CAF's network layer over mutual TLS. CAF's own
// wire protocol trusts every peer, so a peer reaches it only after it has shown a certificate of
// the cluster (front_door.hpp), and nothing here listens without TLS except on the loopback
// interface, and there only when told to.

#include <cstdint>
#include <memory>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "launch/cluster/tls.hpp"
#include "launch/config/address.hpp"
#include "messages/actors.hpp"
#include "messages/error.hpp"

namespace kernelmill {

inline constexpr uint16_t default_head_port = 7612;

/// parse_address() with the head's port where none is named.
expected<network_address> parse_head_address(const std::string& text);

struct link_options {
  std::string credentials;        ///< directory; empty: the default one
  bool insecure_loopback = false; ///< no TLS, on the loopback interface alone
};

/// Null: plain, on loopback.
using shared_tls = std::shared_ptr<const tls_context>;

/// Checks and reads what a process of the cluster shows to the others.
expected<shared_tls> choose_link(const link_options& options, const network_address& address);

/// A CAF configuration for the cluster; the same values on every machine, or links break.
struct cluster_config : caf::actor_system_config {
  cluster_config();
};

/// An actor system that lasts until the process ends, which must not wait for it: CAF 0.17.6 waits
/// for every connection, also for a stranger's that stopped in its handshake. End with leave().
caf::actor_system& lasting_system();

/// Ends the process at once, as kill -9 would, but for what is already said. Whatever must be
/// durable is so by then.
[[noreturn]] void leave(int code);

/// Publishes `head` to other processes; returns the port. A host name must be one of this machine.
expected<uint16_t> publish_head(caf::actor_system& system, const head_actor& head,
                                const network_address& at, const shared_tls& tls);

/// Reaches a head, or says within some seconds why not. Blocks; call it from one thread alone.
expected<head_actor> reach_head(caf::actor_system& system, const network_address& at,
                                const shared_tls& tls);

} // namespace kernelmill
