#pragma once

// Device code, laid out for a process that calls it with nobody beside it (lone_calls.hpp).

#include <string>
#include <vector>

#include "gpu/referee/buffers.hpp"
#include "gpu/task/distribution.hpp"
#include "gpu/task/task.hpp"

namespace kernelmill {

struct lone_files {
  shared_page program; ///< that of device_program.hpp
  shared_page calls;   ///< that of lone_calls.hpp
  unsigned launches;   ///< of one call
};

/// `artifact` is what a build of the contract `device` made. Each case is called `calls` times on
/// contents of this seed. Fails with class candidate where the code cannot be launched so, with
/// "bad_task" (configuration) where the inputs together exceed 8 GiB.
/// REQUIRES: at least one case.
expected<lone_files> lay_out(const task& x, const std::string& artifact,
                             const std::vector<task_case>& cases, unsigned calls,
                             const secret_seed& seed);

/// The cases that whoever writes a candidate is shown, and the shape that a CPU is timed at, which
/// has more blocks than they have: at most 16.
std::vector<task_case> shown_cases(const task& x);

} // namespace kernelmill
