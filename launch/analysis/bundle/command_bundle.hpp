#pragma once

// What a command found out about one candidate, in the layout of a turn's bundle: the same writer,
// fed with a record that no store has.

#include "launch/analysis/bundle/make_bundle.hpp"
#include "messages/message.hpp"
#include "messages/verdict.capnp.h"

namespace kernelmill::bundles {

struct command_material {
  std::string command; ///< "eval": stands where a run's name does
  Message<wire::TurnFacts> facts;
  Message<wire::Verdict> verdict;
  std::string source;
  std::string task_prompt;
  double started_at = 0; ///< seconds since 1970
  double ended_at = 0;
  run_facts of; ///< the machine and the program; its `run` is not read
  tool_words tools;
  std::vector<tool_report> reports;
};

/// Writes `folder`, which is not there or empty. Errors: "directory_not_empty", those of the disk.
expected<made_bundle> leave_command_bundle(const command_material& x, const std::string& folder);

} // namespace kernelmill::bundles
