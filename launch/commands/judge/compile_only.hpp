#pragma once

// `build` and `eval --compile-only`: the compiler's half of `eval`, which needs no GPU.

#include <string>

#include "launch/commands/commands.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

/// What a command says of a build besides the build.
struct build_extras {
  nlohmann::ordered_json keys; ///< of the document; null: none
  std::string text;            ///< before that of the build
};

/// Prints what the compiler said of a candidate, which may be empty of one without code, leaves the
/// bundle that is asked for, and returns the exit code.
expected<int> show_build(const invocation& in, workbench& bench, const offered_candidate& x,
                         const Message<wire::BuildResult>& built, left_bundle& bundle,
                         const build_extras& more = {});

/// Builds, and shows that as show_build() does.
expected<int> compile_only(const invocation& in, workbench& bench, const offered_candidate& x,
                           left_bundle& bundle);

} // namespace kernelmill::commands
