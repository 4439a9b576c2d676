#pragma once

// One compiler and one evaluation slot, without a node: what `eval` and `task check` work with.

#include <memory>
#include <string>
#include <vector>

#include "gpu/process/process.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/backend.hpp"

namespace kernelmill::commands {

class workbench {
public:
  /// Starts the spawner. Errors say which helper program is missing.
  static expected<workbench> open(chosen_backend backend = {});

  native_toolchain& toolchain();
  expected<referee_client*> referee(); ///< started when first asked for
  const std::string& backend() const noexcept { return backend_.name; }
  std::vector<sandbox_layer> layers() { return walls_->probe(); }

private:
  workbench(std::unique_ptr<spawner> processes, chosen_backend backend)
      : backend_(std::move(backend)), processes_(std::move(processes)),
        walls_(std::make_unique<sandbox>(*processes_)) {}

  chosen_backend backend_;

  // On the heap: the sandbox and the referee keep references to what is above them.
  std::unique_ptr<spawner> processes_;
  std::unique_ptr<sandbox> walls_;
  std::unique_ptr<native_toolchain> toolchain_;
  std::unique_ptr<referee_client> referee_;
};

} // namespace kernelmill::commands
