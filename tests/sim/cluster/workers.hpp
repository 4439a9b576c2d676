#pragma once

// What is not real in a simulated cluster: policy servers' clients, compilers and runners. What a
// candidate is worth follows from its session and turn alone, so that luck changes no verdict.

#include "gpu/task/task.hpp"
#include "tests/sim/cluster/machine.hpp"

namespace kernelmill::sim {

/// The client of policy server `number`, in place of one that speaks HTTP.
policy_client_actor spawn_policy(machine& on, uint32_t number);

/// Workers of a node; they end with a job where `worker_dies` is on. `folder`: where libraries go.
compiler_actor spawn_compiler(machine& on, uint32_t node, const std::string& folder);
gpu_runner_actor spawn_runner(machine& on, uint32_t node);

} // namespace kernelmill::sim
