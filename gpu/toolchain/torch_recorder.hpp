#pragma once

// Imports a candidate in a CPU-only sandbox and learns what extensions it asks for.

#include <string>

#include "gpu/python/python_files.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/build_findings.hpp"
#include "gpu/toolchain/torch_request.hpp"

namespace kernelmill {

class warm_recorder;

struct recorder_options {
  std::string backend = "cpu";
  std::string architecture = "sm_90";
  std::string cache_directory;   ///< for the arguments that problems give to ModelNew
  warm_recorder* warm = nullptr; ///< without one, or when it fails: a fresh interpreter
};

/// What came of it: requests, or a fault in `findings`.
struct recorded {
  build_findings findings;
  recording report;
};

/// The variants of a task at which a candidate is constructed, too, when it is recorded, as JSON:
/// those that a policy is shown. Empty where there are none, or no task.
std::string shown_variants(const std::string& task_directory);

/// The function that a task lets modules define in place of ModelNew.
torch_entry entry_of(const std::string& task_directory);

/// The problem's code (problem.py in `task_directory`; empty: none) runs in a process of its own
/// and only the arguments of ModelNew reach the candidate's.
recorded record_candidate(sandbox& walls, const python_facts& python,
                          const recorder_options& options, const std::string& source,
                          const std::string& task_directory, int deadline_ms);

} // namespace kernelmill
