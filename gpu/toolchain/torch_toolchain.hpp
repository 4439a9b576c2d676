#pragma once

// Builds candidates of the contract `torch`: Python modules with ModelNew. The module is imported
// in a sandbox where load_inline and load are recorded, what it asked for is compiled, and module
// and libraries become one artifact (gpu/task/torch_artifact.hpp).

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/toolchain.hpp"

namespace kernelmill {

/// GPU code of a Python module, as its compilers gave it; see list().
struct listed_extension {
  std::string name;   ///< "relu.cuda_sources": what the table of lines calls it
  std::string source; ///< the text that its lines are of
  std::string ptx;
  std::string cubin;
  std::string log; ///< what the compiler of the cubin said
};

struct listed_module {
  error fault{fault_class::none, {}, {}, {}}; ///< of the candidate, which has no code then
  std::string log;
  std::vector<listed_extension> extensions;
  std::map<std::string, std::string> triton_files; ///< as of torch_artifact
  std::string triton_problem;                      ///< why not all was compiled, or empty
};

/// Thread safety: any number of threads may build at once.
class torch_toolchain {
public:
  /// `options.python` is not empty. Asks nothing yet.
  torch_toolchain(sandbox& walls, toolchain_options options, build_cache& cache);
  ~torch_toolchain();

  /// Faults of the candidate: compile_error, import_error, missing_model, compile_timeout,
  /// compile_memory. Faults of the machine: python_missing, python_failed, toolchain_missing.
  Message<wire::BuildResult> build(wire::BuildRequest::Reader request, int deadline_ms);

  /// The GPU code of a module with tables of lines, for looking at; nothing is kept.
  /// `task_directory` has the problem whose arguments Triton's kernels are compiled for; empty:
  /// none is known, and none are. Fails with the machine's faults of build().
  expected<listed_module> list(const std::string& source, const std::string& task_directory,
                               int deadline_ms);

  /// Builds an extension of ours, as native_toolchain::probe.
  expected<void> probe(int deadline_ms);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
