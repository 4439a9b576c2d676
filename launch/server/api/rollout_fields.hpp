#pragma once

// What requests for rollouts and their answers hold.

#include "launch/server/api/api_fields.hpp"

namespace kernelmill::services {

const fields& rollout_order_fields();
const fields& rollout_ack_fields();
const fields& rollout_commit_fields();
const fields& rollout_rollback_fields();
const fields& weights_fields();
const fields& weights_server_fields();

/// Rows of schemas() and of operations().
std::vector<schema> rollout_schemas();
std::vector<operation> rollout_operations();

} // namespace kernelmill::services
