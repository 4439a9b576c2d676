#pragma once

// A fork: a run of one group whose episodes begin with the first turns of another run's episode.
// These turns are copied into the fork's own store, so that it needs the other run no more; its
// manifest says where they come from. They are context: their credit is in the run that they come
// from, and exports of the fork count its own turns alone.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "storage/artifacts.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

/// The model that answered in turns: what a run's manifest says of its policy.
struct asked_policy {
  std::string model, licence;
};

struct fork_origin {
  std::string directory; ///< of the other run, absolute
  std::string run;       ///< its name
  std::string task;
  std::string task_digest;
  uint32_t group = 0, member = 0;
  uint32_t turns = 0;    ///< that are shared, from the first on
  std::string turn_id;   ///< of the last of them, there
  std::string prompt;    ///< that the policy reads behind the last shared feedback; may be empty
  std::string candidate; ///< of mode `tools`: the active one to begin with; empty: as it was
  std::vector<asked_policy> policies; ///< that may have written the shared turns
};

/// What stands under "fork" in a manifest.
nlohmann::ordered_json to_json(const fork_origin& x);
std::optional<fork_origin> fork_of(const nlohmann::ordered_json& manifest);

/// The policies that may have written the turns that a fork shares: its origin's, and where that is
/// a fork, those of its own origin. Nothing: a fork of an older program whose origin is gone.
std::optional<std::vector<asked_policy>>
policies_of_shared_turns(const nlohmann::ordered_json& manifest);

/// The same of a run's folder; nothing when it is no fork. Errors: those of reading the manifest.
expected<std::optional<fork_origin>> fork_of(const run_directory& run);

/// Looks the episode up and checks that it can be forked. `turns` of `from` are to be shared.
/// Errors: "not_found" (there are not so many turns), "usage" (the infrastructure lost one of
/// them).
expected<fork_origin> fork_from(const run_directory& from, uint32_t group, uint32_t member,
                                uint32_t turns);

/// Commits the shared turns for each member of group 0 of `run`, all in one transaction, unless
/// they are there: a fork that was killed before is made whole. Their texts go to `artifacts`.
/// Errors: those of the two stores, "fork_origin_gone" (the other run is needed and not there).
/// REQUIRES: `to` is the store of `run`, open.
expected<void> commit_shared_turns(const fork_origin& from, const run_directory& run,
                                   uint32_t members, store& to, artifact_store& artifacts);

} // namespace kernelmill
