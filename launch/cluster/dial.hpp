#pragma once

// Connects to a head. CAF's own connect waits for minutes for a host that says nothing, and for
// ever for one that accepts and then is silent.

#include <string>

#include "launch/cluster/link.hpp"

namespace kernelmill {

/// Connects, shakes hands, and waits until the other side says something; what it says is for CAF
/// to judge. Blocks for some seconds at most. Errors: head_unreachable, head_refused.
expected<link_socket> dial(const network_address& at, const shared_tls& tls);

tl::unexpected<error> unreachable_head(const network_address& at, const std::string& cause);

/// It broke off the handshake.
tl::unexpected<error> refused_by_head(const network_address& at, const std::string& cause);

} // namespace kernelmill
