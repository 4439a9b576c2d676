#pragma once

// traces.jsonl and metrics.jsonl of a run: what people and dashboards read, in the words that
// users of kernel_rl know. Both say nothing that the lineage does not say, so they can be written
// again from it at any time, and resume does: no line is ever torn, lost or doubled for good.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "storage/artifacts.hpp"
#include "storage/group_reader.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

/// Returns the line of traces.jsonl for an episode that has ended: turns with prompt, response,
/// evaluation, reward and its parts, then the episode's outcome, returns and readiness.
expected<nlohmann::ordered_json> episode_trace(const stored_episode& episode,
                                               const artifact_store& artifacts);

/// Returns the line of metrics.jsonl for a group that has ended; its `step` is the group's number.
/// Turns that the infrastructure lost count only as "infrastructure_turns".
nlohmann::ordered_json group_metrics(const stored_group& group);

/// Writes both files anew from the store, each at once. REQUIRES: no run_journal of this run is
/// open.
expected<void> rebuild_projections(const store& from, const artifact_store& artifacts,
                                   const run_directory& run);

} // namespace kernelmill
