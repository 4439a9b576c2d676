#pragma once

// The runs of an export: their stores, opened for reading, and what their folders say.

#include <deque>
#include <optional>
#include <set>

#include "actors/governance/licences.hpp"
#include "launch/cli/command.hpp"
#include "storage/artifacts.hpp"
#include "storage/export/dataset.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

struct exported_run {
  run_directory where;
  store lineage;
  artifact_store artifacts;
  std::optional<store> verdicts = std::nullopt; ///< of the version that --verdict names
};

struct exported_runs {
  std::deque<exported_run> opened; ///< never moved: sources point into it
  std::vector<exports::source> sources;
  std::set<std::string> accepted_terms;
};

/// Opens every RUN for a purpose. Errors: "usage" (a run is named twice), "unknown_terms", those of
/// find_run and of the store.
expected<exported_runs> open_runs(const cli::invocation& in, purpose wanted);

/// {"program": "kernelmill", "version": ..., "git": ...}.
nlohmann::ordered_json made_by();

} // namespace kernelmill::commands
