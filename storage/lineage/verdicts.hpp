#pragma once

// Verdicts given again: a run's facts judged by other rules, as records beside the run's own, which
// stay. A version is a folder of the run:
//   verdicts/NAME/rules.json   the rules, their digest, the program that judged, its number among
//                              the versions; written when the version is begun
//   verdicts/NAME/lineage/     a store of the run's records with what the verdict changes alone:
//                              turns with id, transition and verdict, ends of episodes and groups
// The run's own verdicts are the version "original".

#include <optional>
#include <string>
#include <vector>

#include "messages/base/json_value.hpp"
#include "storage/lineage/group_reader.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

inline constexpr const char* original_verdicts = "original";
inline constexpr const char* latest_verdicts = "latest";

struct verdict_version {
  std::string name;
  std::string path;
  uint64_t number = 0;          ///< 1, 2, ... in the order in which they were begun
  std::string digest;           ///< SHA-256 of the rules
  nlohmann::ordered_json rules; ///< all of rules.json

  std::string store() const { return path + "/lineage"; }
};

/// Returns the versions of a run besides "original", oldest first. A folder without rules.json is
/// none: it was begun by a process that was killed.
expected<std::vector<verdict_version>> list_verdicts(const run_directory& run);

/// Returns nothing for "original", and for "latest" when there is no other. Errors: "not_found",
/// whose hint lists what there is.
expected<std::optional<verdict_version>> find_verdicts(const run_directory& run,
                                                       const std::string& name);

/// Makes a version, or finds the one of that name. `rules` gets "schema_version", "name",
/// "number", "digest" and "created_at" added. An empty name: the first digits of the digest.
/// Errors: "verdicts_exist" (that name has other rules), "invalid_value", those of the disk.
expected<verdict_version> begin_verdicts(const run_directory& run, const std::string& name,
                                         const nlohmann::ordered_json& rules);

/// Returns the group with the verdicts, transitions and ends of `judged`, which holds the same
/// group of a version. Errors: "verdicts_incomplete" when a turn or an end is not judged yet.
expected<stored_group> with_verdicts(const stored_group& facts, const stored_group& judged);

} // namespace kernelmill
