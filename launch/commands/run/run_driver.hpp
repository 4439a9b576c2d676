#pragma once

#include "launch/cli/command.hpp"
#include "launch/node/node.hpp"

namespace kernelmill::commands {

/// Runs a run to its end and says how it goes: what `run`, `resume` and `fork` have in common.
/// Returns the exit code. Errors: the run could not start. `was_finished`: nothing of it is left to
/// do, so one sentence says that and its log gets no lines.
expected<int> drive_run(const cli::invocation& in, run_options options, bool was_finished = false);

} // namespace kernelmill::commands
