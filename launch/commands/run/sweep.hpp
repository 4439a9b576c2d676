#pragma once

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

/// `run --sweep`: every combination of values as a run of its own, one after the other. A run of
/// the grid that has finished is passed over, and one that has begun goes on, so that the same
/// command takes a sweep up. Returns the exit code of the first run that did not finish.
expected<int> run_sweep(const cli::invocation& in);

} // namespace kernelmill::commands
