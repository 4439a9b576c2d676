#pragma once

// One compiler and one evaluation slot, without a node: what `eval` and `task check` work with.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gpu/process/core_shares.hpp"
#include "gpu/process/process.hpp"
#include "gpu/referee/lost_beside.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/machine/backend.hpp"

namespace kernelmill::commands {

class workbench {
public:
  /// Starts the spawner. Errors say which helper program is missing.
  static expected<workbench> open(chosen_backend backend = {});

  native_toolchain& toolchain();
  expected<referee_client*> referee();               ///< the first; started when first asked for
  expected<std::vector<referee_client*>> referees(); ///< one for each GPU, or one
  /// How many processes each referee keeps ready. Before the first is started.
  void keep_warm(unsigned count) noexcept { warm_ = count; }
  /// How many calls on the same contents are compared. Before the first referee is started.
  void repeat_calls(unsigned count) noexcept { determinism_runs_ = count; }
  /// How many compilers have a core each, beside what is timed.
  size_t compilers() const {
    return std::max<size_t>(1, cores_.compilers.empty() ? cores_of_this_process().size()
                                                        : cores_.compilers.size());
  }
  /// Compiles what tasks bring along, before a GPU is held for it.
  void build_ahead(const std::vector<std::string>& task_directories);
  /// Builds below `directory` and takes nothing from the machine's cache of builds, which has what
  /// is to be built again. Before the toolchain is first asked for.
  void build_afresh_in(std::string directory) { build_directory_ = std::move(directory); }
  /// What is built has a table of lines. Before the toolchain is first asked for.
  void keep_lines() noexcept { keeps_lines_ = true; }
  sandbox& walls() noexcept { return *walls_; }
  const std::string& backend() const noexcept { return backend_.name; }
  const chosen_backend& machine() const noexcept { return backend_; }
  /// Tried once.
  const std::vector<sandbox_layer>& layers() {
    if (layers_.empty()) layers_ = walls_->probe();
    return layers_;
  }

private:
  workbench(std::unique_ptr<spawner> processes, chosen_backend backend)
      : backend_(std::move(backend)), processes_(std::move(processes)),
        walls_(std::make_unique<sandbox>(*processes_)), cores_(share_cores(backend_.gpus.size())) {
    walls_->keep_to(cores_.compilers);
  }

  chosen_backend backend_;
  unsigned warm_ = 1;
  unsigned determinism_runs_ = defaults::determinism_runs;
  std::shared_ptr<lost_beside> lost_ = std::make_shared<lost_beside>();
  bool keeps_lines_ = false;
  std::string build_directory_; ///< empty: the machine's cache

  // On the heap: the sandbox and the referee keep references to what is above them.
  std::unique_ptr<spawner> processes_;
  std::unique_ptr<sandbox> walls_;
  core_shares cores_;
  std::vector<sandbox_layer> layers_;
  std::unique_ptr<native_toolchain> toolchain_;
  std::vector<std::unique_ptr<referee_client>> referees_;
};

} // namespace kernelmill::commands
