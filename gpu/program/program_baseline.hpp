#pragma once

// INTERNAL to gpu/program: a task's baseline, built and tested in this slot, and what its processes
// show. The same is asked of candidates.

#include <optional>
#include <string>
#include <vector>

#include "gpu/program/program_reports.hpp"
#include "gpu/program/program_run.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/program_build.hpp"

namespace kernelmill {

struct program_baseline {
  std::string archive;
  std::vector<std::string> test_endings; ///< of its processes
  std::vector<std::string> benchmark_endings;
  std::vector<std::string> replaced;
};

/// One look at a program that was run.
struct judged_run {
  program_outcome outcome;
  program_reports reports;
};

expected<judged_run> run_and_read(sandbox& walls, const program_place& slot,
                                  const program_command& command);

/// Why a program's tests failed, by how the process ended and, against a baseline, by what its
/// processes lack; nothing where they passed. The words name nothing that the tests printed.
std::optional<error> fault_of_run(const judged_run& x, const std::vector<std::string>& endings,
                                  const std::vector<std::string>& replaced, uint32_t timeout_s);

/// Builds and tests it. Fails with class configuration, "bad_task" or "bad_baseline", or with class
/// infrastructure.
expected<program_baseline> make_baseline(sandbox& walls, const program_place& slot,
                                         const program_tools& tools, const task& x,
                                         int build_deadline_ms, uint64_t memory_bytes);

/// The time that the task's clock says of a run, in seconds; why there is none.
expected<double> inside_seconds(const judged_run& x, const program_timing& timing);

} // namespace kernelmill
