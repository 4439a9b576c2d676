#pragma once

// `build` and `eval --compile-only`: the compiler's half of `eval`, which needs no GPU.

#include "launch/commands/commands.hpp"
#include "launch/commands/workbench.hpp"
#include "launch/inspecting/inspected.hpp"
#include "launch/judging/candidate_judging.hpp"

namespace kernelmill::commands {

/// Prints what the compiler said of a candidate, which may be empty of one without code, and
/// returns the exit code. `listing` is its code, where somebody wants to see that, too.
expected<int> show_build(const invocation& in, const offered_candidate& x,
                         const Message<wire::BuildResult>& built,
                         const inspecting::inspected* listing = nullptr,
                         const inspecting::showing& how = {});

/// Builds, prints what the compiler said, and returns the exit code.
expected<int> compile_only(const invocation& in, workbench& bench, const offered_candidate& x);

} // namespace kernelmill::commands
