#pragma once

// The steps from a source file to a verdict, outside of a run: what `eval` and `judge` share.

#include <optional>
#include <string>

#include "actors/episode/completion_parser.hpp"
#include "actors/governance/judge.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/cli/command.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/backend.hpp"

namespace kernelmill::commands {

/// One candidate on its way: its task, already for a backend, and what was read of it.
struct offered_candidate {
  task what;
  parsed_completion parsed;
  std::string sha256;
};

struct judging_options {
  bool timed = true;
  std::string seed; ///< 64 hex digits, or empty
  timing_section timing;
  std::string clock = "call"; ///< or "device"
};

/// Reads a file, or stdin for "-".
expected<std::string> read_candidate(const std::string& path);

/// Takes --torch-mode, --language and --float32 over into a task of the contract `torch`.
void choose_torch(task& what, const cli::invocation& in, const chosen_backend& backend);

/// Makes the contract of the task the wanted one; "auto" takes `device` when the source has launch
/// lines, and `torch` for a task of that contract, which takes no other.
expected<void> choose_contract_for(task& what, const std::string& wanted,
                                   const std::string& source);

/// What the format gate sees of a plain source file: the rules of a completion without its tags.
parsed_completion as_source(std::string text, const task& what);

Message<wire::BuildResult> build_candidate(native_toolchain& toolchain, const offered_candidate& x);

/// A fault of the machine is tried once more: of a referee that ended by a fresh one.
expected<Message<wire::EvaluateResult>> evaluate_candidate(referee_client& referee,
                                                           const judging_options& options,
                                                           const offered_candidate& x,
                                                           wire::BuildResult::Reader built);

/// All that the judge needs. `fault` is that of an evaluation that failed.
Message<wire::TurnFacts> facts_of(const offered_candidate& x,
                                  const Message<wire::BuildResult>& built,
                                  const Message<wire::EvaluateResult>& evaluated,
                                  const std::optional<error>& fault);

expected<governance_config> governance_rules(const std::string& preset);

} // namespace kernelmill::commands
