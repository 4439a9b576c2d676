#pragma once

// What a node offers besides actors: a spawner, the sandbox, the toolchain, and one referee per
// slot. Everything here owns processes; dropping it ends them.

#include <memory>
#include <string>
#include <vector>

#include "gpu/process/core_shares.hpp"
#include "gpu/process/process.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/backend.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// The cores of this process, divided among evaluation slots.
std::vector<std::vector<int>> slot_cpus(const evaluation_section& config);

/// Whether each of the required layers of the sandbox stands here; one that is weaker does not.
/// Errors: "sandbox_layer_missing" with the remedy, "unknown_layer".
expected<void> check_layers(const std::vector<sandbox_layer>& layers,
                            const std::vector<std::string>& required);

struct node_slots {
  std::shared_ptr<spawner> processes;
  std::shared_ptr<sandbox> walls;
  std::vector<sandbox_layer> layers;
  std::shared_ptr<native_toolchain> toolchain;
  uint32_t compile_slots = 1;
  core_shares cores; ///< on GPUs
  std::vector<std::shared_ptr<referee_client>> referees;
  std::vector<std::string> referee_names; ///< "cpu0 (cores 0,1)"

  bool sandbox_complete() const; ///< no layer is missing
};

/// Starts everything, and refuses when a sandbox layer that the configuration requires is missing.
/// For GPUs it first compiles what the tasks in these directories bring along. Without `evaluate`
/// there are no referees: a machine that only compiles.
expected<node_slots> start_slots(const run_config& config, const chosen_backend& backend,
                                 const std::vector<std::string>& task_directories,
                                 bool evaluate = true);

} // namespace kernelmill
