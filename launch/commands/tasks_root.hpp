#pragma once

#include "gpu/task/task.hpp"
#include "launch/cli/command.hpp"

namespace kernelmill::commands {

/// --root alone, or the installation's tasks and the user's.
expected<task_roots> tasks_roots(const cli::invocation& in);

} // namespace kernelmill::commands
