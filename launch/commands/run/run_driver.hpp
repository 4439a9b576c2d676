#pragma once

#include "launch/cli/command.hpp"
#include "launch/node/node.hpp"

namespace kernelmill::commands {

/// Runs a run to its end and says how it goes: what `run`, `resume` and `fork` have in common.
/// Returns the exit code. Errors: the run could not start.
expected<int> drive_run(const cli::invocation& in, run_options options);

} // namespace kernelmill::commands
