#pragma once

// Looks whether somebody answers at an address before CAF connects to it: CAF's own connect waits
// for minutes for a host that says nothing, and for ever for one that accepts and then is silent.

#include <string>

#include "launch/cluster/link.hpp"

namespace kernelmill {

/// Connects, waits until the other side says something, and hangs up. What it says is for CAF to
/// judge. Errors: head_unreachable.
expected<void> probe_head(const network_address& at, bool tls);

tl::unexpected<error> unreachable_head(const network_address& at, const std::string& cause);

} // namespace kernelmill
