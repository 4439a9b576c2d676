#pragma once

// --bundle DIR: what a command found out about a candidate, left in the layout of a turn's bundle.

#include <optional>
#include <string>
#include <vector>

#include "launch/analysis/bundle/command_bundle.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/judging/inspecting/inspected.hpp"

namespace kernelmill::commands {

/// What --bundle asks for. Made when the command begins, so that a folder that cannot be written
/// is refused before the work. Does nothing where the option was not given.
class left_bundle {
public:
  /// `command` is the command's name. Errors: "directory_not_empty".
  static expected<left_bundle> begin(const invocation& in, std::string command);

  bool wanted() const noexcept { return in_->has("--bundle"); }

  Message<wire::TurnFacts> facts;
  std::optional<Message<wire::Verdict>> verdict; ///< nothing: it asked for none
  nlohmann::ordered_json output;                 ///< as --json prints it
  bundles::tool_words tools;
  std::vector<bundles::tool_report> reports;

  expected<void> leave(const offered_candidate& x, const chosen_backend& machine,
                       const std::vector<sandbox_layer>& layers);
  expected<void> leave(const offered_candidate& x, workbench& bench) {
    return wanted() ? leave(x, bench.machine(), bench.layers()) : expected<void>{};
  }

  /// Of a tool's report, which is of no candidate and of no machine that is known.
  expected<void> leave_report();

private:
  expected<void> write(const offered_candidate* x, nlohmann::ordered_json machine);
  left_bundle(const invocation& in, std::string command);
  nlohmann::ordered_json again() const;

  const invocation* in_;
  std::string command_;
  double started_;
};

/// What a compiler made of the source, for build/ of a bundle.
void add_listings(const inspecting::inspected& x, bundles::tool_words& to);

} // namespace kernelmill::commands
