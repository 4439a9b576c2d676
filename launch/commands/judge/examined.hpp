#pragma once

// A candidate on its way into a tool of the toolkit: what `profile FILE` and `sanitize FILE` share.

#include <optional>
#include <string>

#include "gpu/examine/examine.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/commands/options.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

struct examined_candidate {
  workbench bench;
  examine_options options;
  cuda::gpu gpu;      ///< of the backend cuda alone
  std::string device; ///< GPU and driver, in words
  std::string python; ///< of the contract torch alone
  offered_candidate candidate;
  Message<wire::BuildResult> built;
  std::string log;                     ///< of a compiler that refused it
  std::optional<std::string> artifact; ///< nothing: it did not compile

  const task& what() const { return *candidate.what; }
};

/// Reads FILE for --task and builds it for cuda or cpu; on a GPU with a table of lines.
expected<examined_candidate> prepare_examined(const invocation& in,
                                              const std::string& wanted = "cuda");

/// What each document begins with.
nlohmann::ordered_json head_of(const examined_candidate& x);

/// Prints the compiler's words and leaves the bundle that is asked for; returns the exit code.
expected<int> say_not_compiled(const invocation& in, examined_candidate& x, left_bundle& bundle);

/// Leaves the bundle that is asked for, with the command's document and what was found.
expected<void> leave_examined(examined_candidate& x, nlohmann::ordered_json document,
                              left_bundle& bundle,
                              const Message<wire::ProfileResult>& profile = {});

/// The last words of tool and program, clean.
std::string said_last(const examination& x);

cli::argument_spec examined_file();
cli::option_spec examined_task();

} // namespace kernelmill::commands
