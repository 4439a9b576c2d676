#pragma once

// The steps from a source file to a verdict, outside of a run: what `eval`, `judge` and `serve`
// share.

#include <optional>
#include <string>

#include "actors/episode/completion_parser.hpp"
#include "actors/governance/judge.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/backend.hpp"

namespace kernelmill {

/// One candidate on its way: its task, already for a backend, and what was read of it.
struct offered_candidate {
  task_ptr what;
  parsed_completion parsed;
  std::string sha256;
};

struct judging_options {
  bool timed = true;
  std::string seed; ///< 64 hex digits, or empty
  timing_section timing;
  std::string clock = "device"; ///< or "call"
};

/// Reads a file, or stdin for "-".
expected<std::string> read_candidate(const std::string& path);

/// What answers of the contract `torch` are asked for and judged by: --torch-mode, --language,
/// --float32, --baseline.
struct torch_choice {
  std::string mode = "honest";
  std::string language = "any";
  std::string float32 = "ieee";
  std::string baseline = "eager";
  std::string best_kernels;
};

/// The terms of a backend, with the contract still to be said.
judging_terms terms_of(const chosen_backend& backend, const torch_choice& choice);

/// The task with the wanted contract; "auto" takes `device` when the source has launch lines, and
/// `torch` for a task of that contract, which takes no other. Errors: unsupported_contract.
expected<task_ptr> on_contract(const task_ptr& what, const std::string& wanted,
                               const std::string& source);

/// What answers to a task are written in: "python", "cpp", "cuda" or "hip".
std::string answer_language(const task& what);

/// What the format gate sees of a plain source file: the rules of a completion without its tags.
parsed_completion as_source(std::string text, const task& what);

Message<wire::BuildRequest> build_request_of(const offered_candidate& x);

/// Fails when the seed of the options is none.
expected<Message<wire::EvaluateRequest>> evaluate_request_of(const judging_options& options,
                                                             const offered_candidate& x,
                                                             wire::BuildResult::Reader built);

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
                                  const std::optional<error>& fault,
                                  const Message<wire::ProfileResult>& profile = {});

/// What a policy would be asked; empty of a candidate of no task.
std::string prompt_of(const offered_candidate& x);

expected<governance_config> governance_rules(const std::string& preset);

} // namespace kernelmill
