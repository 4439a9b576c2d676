#pragma once

// Builds candidates of the contract `program` and remembers them, as native_toolchain does for its
// own.

#include <memory>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/toolchain.hpp"

namespace kernelmill {

/// Thread safety: any number of threads may build at once.
class program_toolchain {
public:
  /// Asks nothing yet.
  program_toolchain(sandbox& walls, const toolchain_options& options, build_cache& cache);
  ~program_toolchain();

  /// Faults of the candidate: bad_answer, missing_reference, compile_error, compile_timeout,
  /// compile_memory. Of the task: bad_task, task_changed, needs_unmet. Of the machine:
  /// toolchain_missing, toolchain_failed, machine_busy.
  Message<wire::BuildResult> build(wire::BuildRequest::Reader request, int deadline_ms);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
