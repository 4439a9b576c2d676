#pragma once

// Builds candidates of the contract `torch`: Python modules with ModelNew. The module is imported
// in a sandbox where load_inline and load are recorded, what it asked for is compiled, and module
// and libraries become one artifact (gpu/task/torch_artifact.hpp).

#include <memory>
#include <string>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/toolchain.hpp"

namespace kernelmill {

/// Thread safety: any number of threads may build at once.
class torch_toolchain {
public:
  /// `options.python` is not empty. Asks nothing yet.
  torch_toolchain(sandbox& walls, toolchain_options options, build_cache& cache);
  ~torch_toolchain();

  /// Faults of the candidate: compile_error, import_error, missing_model, compile_timeout,
  /// compile_memory. Faults of the machine: python_missing, python_failed, toolchain_missing.
  Message<wire::BuildResult> build(wire::BuildRequest::Reader request, int deadline_ms);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
