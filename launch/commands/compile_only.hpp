#pragma once

// `eval --compile-only`: the compiler's half of `eval`, which needs no GPU.

#include "launch/judging/candidate_judging.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/workbench.hpp"

namespace kernelmill::commands {

/// Builds, prints what the compiler said, and returns the exit code.
expected<int> compile_only(const invocation& in, workbench& bench, const offered_candidate& x);

} // namespace kernelmill::commands
