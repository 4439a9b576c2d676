#pragma once

// Imports of candidates without the import of torch: a warm process in bubblewrap has torch and
// forks, for each candidate, a process that walls itself in and records
// (kernelmill_torch/record.py).

#include <memory>
#include <string>
#include <vector>

#include "gpu/python/python_files.hpp"
#include "gpu/toolchain/compiler_run.hpp"

namespace kernelmill {

struct recorder_job {
  std::string backend;
  std::string capability; ///< "9.0"
  int source = -1;        ///< memory file
  int init = -1;          ///< memory file; below 0: none
  int deadline_ms = 60'000;
  std::string entry; ///< torch_entry::text()
};

/// Thread safety: any number of threads may record at once.
class warm_recorder {
public:
  /// With `triton_ahead` the recorders are prepared to compile Triton for a GPU.
  warm_recorder(sandbox& walls, python_facts python, bool triton_ahead);
  ~warm_recorder();

  /// The same outcome as that of a fresh interpreter that runs record.py. Fails only when there is
  /// no warm process to be had; it is started again by the next call.
  expected<compiler_outcome> run(const recorder_job& job);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
