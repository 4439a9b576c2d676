#pragma once

// What the page shows of whole runs: their tasks, the best kernel of each task and device over all
// runs, and what a run was started with.

#include <string>

#include "launch/analysis/watch/world.hpp"

namespace kernelmill::page {

using watch::json;

/// A row a task: episodes, turns, accepted turns, mean best reward of episodes, best speedup.
/// {where, sort, offset, limit}
expected<json> tasks_document(const watch::world& in, const run_directory& run, const json& query);

/// The accepted, timed turn with the highest lower bound of each task and device, over all runs
/// that can be read. {where, sort, offset, limit}
expected<json> kernels_document(const watch::world& in, const json& query);

/// config.json of the run. Errors: "not_found".
expected<json> config_document(const run_directory& run);

} // namespace kernelmill::page
