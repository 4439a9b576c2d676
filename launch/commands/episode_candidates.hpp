#pragma once

// The candidates of the episode that a command names.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/cli/command.hpp"
#include "launch/commands/place.hpp"
#include "storage/lineage/candidate_graph.hpp"

namespace kernelmill::commands {

struct episode_candidates {
  place where;
  std::string name;    ///< as it was typed
  std::string episode; ///< "g3.e1"
  std::vector<Message<wire::Record>> turns;
  candidate_graph graph;
  artifact_store artifacts;

  /// Errors: "not_found".
  expected<const candidate_entry*> find(const std::string& id) const;

  /// A candidate as documents have it, with its "source".
  expected<nlohmann::ordered_json> document(const std::string& id) const;
};

/// The argument EPISODE, and what it names. Errors: "usage", "not_found", those of the store.
cli::argument_spec episode_argument();
expected<episode_candidates> candidates_of(const cli::invocation& in);

} // namespace kernelmill::commands
