#pragma once

// How a policy server is told to load weights from a folder: vLLM and SGLang by their own routes,
// while they serve. Others load at their start only.

#include <string>
#include <vector>

#include "actors/handoff/rollout_host.hpp"
#include "actors/policy_client/http/http_transport.hpp"
#include "actors/policy_client/policy_keys.hpp"

namespace kernelmill::rollouts {

/// Asks one server. Blocks until it has them. Errors: "weights_refused" (the server, or its kind,
/// cannot do it), "weights_not_loaded" (it could not do it now); a server that was paused for it
/// goes on either way.
expected<handoff::loaded_server> load_weights_at(http_transport& transport,
                                                 const policy_config& server, const secret_ptr& key,
                                                 const handoff::weights_wish& wish);

/// Asks all servers at once, each with its own key or one of the operator's. The error names each
/// server that has not loaded them.
expected<std::vector<handoff::loaded_server>> load_weights_at_all(const handoff::weights_wish& x,
                                                                  const policy_keys& keys);

} // namespace kernelmill::rollouts
