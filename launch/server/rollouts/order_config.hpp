#pragma once

// What a client's order may say of a configuration. A client with a token may choose tasks, servers
// and sampling; files, programs, variables and secrets of this machine are the operator's.

#include <string>

#include "actors/policy_client/policy_keys.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::rollouts {

/// The order's configuration with `policy.key` and `retrieval.embedder.key`, names of the
/// operator's keys, replaced by what they stand for. Errors: "not_in_orders" for a key of the
/// machine, "policy_key_refused".
expected<nlohmann::ordered_json> order_config(const std::string& config, const policy_keys& keys);

/// The configuration of an order that is the operator's own, with all its keys.
expected<nlohmann::ordered_json> own_config(const std::string& config);

/// Whether the operator's keys are still those that a resolved configuration uses, for a run that
/// is gone on with. Errors: "policy_key_refused".
expected<void> check_stored_keys(const std::string& config, const policy_keys& keys);

} // namespace kernelmill::rollouts
