#pragma once

// A candidate, laid out for a process that calls it with nobody beside it: kernelmill-candidate
// (lone_calls.hpp), or Python (kernelmill_torch/lone.py).

#include <string>
#include <vector>

#include "gpu/python/python_files.hpp"
#include "gpu/referee/buffers.hpp"
#include "gpu/task/distribution.hpp"
#include "gpu/task/task.hpp"

namespace kernelmill {

struct lone_files {
  shared_page program;   ///< that of device_program.hpp, a library, or an artifact of a module
  shared_page calls;     ///< that of lone_calls.hpp, or what init_inputs.py wrote
  unsigned launches = 0; ///< of one call; of device code alone
  std::vector<std::string> argv;             ///< of the process; empty: kernelmill-candidate's
  std::vector<std::string> environment = {}; ///< besides what every tool gets
  std::vector<bind_mount> mounts = {};
  bool marks_last = false; ///< a profiler is told where the last call begins and ends
};

/// `artifact` is what a build of the contract `device` made. Each case is called `calls` times on
/// contents of this seed. Fails with class candidate where the code cannot be launched so, with
/// "bad_task" (configuration) where the inputs together exceed 8 GiB.
/// REQUIRES: at least one case.
expected<lone_files> lay_out(const task& x, const std::string& artifact,
                             const std::vector<task_case>& cases, unsigned calls,
                             const secret_seed& seed);

/// The same of a library of the contract `native`. The last of several calls is marked.
expected<lone_files> lay_out_library(const task& x, const std::string& library,
                                     const std::vector<task_case>& cases, unsigned calls,
                                     const secret_seed& seed);

/// The same of what a build of the contract `torch` made: forward is called so often, on inputs
/// that the problem draws in a sandbox of its own. Fails with "bad_task" (configuration) where that
/// cannot be had in `limit_ms`, or has more than 1 GiB.
expected<lone_files> lay_out_module(sandbox& walls, const python_facts& python, const task& x,
                                    const std::string& artifact, unsigned calls,
                                    const secret_seed& seed, int limit_ms);

/// One of the three, by the task's contract: its shown cases once each, on fresh contents. `python`
/// is asked only for the contract torch; fails with "python_missing" where it is empty then.
expected<lone_files> lay_out_candidate(sandbox& walls, const std::string& python, const task& x,
                                       const std::string& artifact, int limit_ms);

/// How often a profiler has a candidate called; all calls but the last wake the GPU, or compile and
/// tune what a module launches.
unsigned profiled_calls(const task& x);

/// One of the three at the shape that is timed, called so often, for a profiler of the last call.
expected<lone_files> lay_out_profiled(sandbox& walls, const std::string& python, const task& x,
                                      const std::string& artifact, unsigned calls, int limit_ms);

/// The cases that whoever writes a candidate is shown, and the shape that a CPU is timed at, which
/// has more blocks than they have: at most 16.
std::vector<task_case> shown_cases(const task& x);

} // namespace kernelmill
