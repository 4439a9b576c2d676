#pragma once

// --on HOST: a command runs on another machine as it would here.

#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

/// The option, for the rows of commands that have it.
cli::option_spec on_option();

/// Runs the command of `row` on the host that --on names: sends what it reads, prints what it
/// prints, fetches what it leaves. Returns its exit code.
expected<int> on_host(const invocation& in, const cli::command& row);

} // namespace kernelmill::commands
