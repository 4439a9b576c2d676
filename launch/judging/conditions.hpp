#pragma once

// What holds on this machine today, for comparing it with what held when a kernel was judged.

#include <map>
#include <string>

#include "gpu/task/task.hpp"
#include "launch/analysis/library/staleness.hpp"
#include "launch/machine/backend.hpp"

namespace kernelmill {

/// Of one backend. `toolchain` is native_toolchain::identity(); `python` is asked for torch, and
/// may be empty; `tasks` are digests_of_tasks().
library::conditions_today conditions_of(const chosen_backend& backend, const std::string& toolchain,
                                        const std::string& python, const std::string& program,
                                        std::map<std::string, std::string> tasks);

/// Digests of these tasks, by id; those that cannot be loaded are left out.
std::map<std::string, std::string> digests_of_tasks(const task_roots& roots,
                                                    const std::vector<library::kernel>& of);

} // namespace kernelmill
