#pragma once

// What the page shows of whole runs: their tasks, the library of kernels over all
// runs, and what a run was started with.

#include <string>

#include "launch/analysis/watch/world.hpp"
#include "launch/server/page/kept_runs.hpp"

namespace kernelmill::page {

using watch::json;

/// A row a task: episodes, turns, accepted turns, mean best reward of episodes, best speedup.
/// {where, sort, offset, limit}
expected<json> tasks_document(const run_facts& facts, const json& query);

/// All runs below the root. {where, sort, offset, limit}
expected<json> runs_document(const watch::world& in, const json& query, kept_runs& kept);

/// Of the run in a folder below the root.
kernels_of_run kernels_of(const watch::world& in, const std::string& name);

/// The library of kernels over all runs that can be read, by
/// launch/analysis/library/kernel_library.hpp. {where, sort, offset, limit}
expected<json> kernels_document(const watch::world& in, const json& query, kept_runs& kept);

/// config.json of the run. Errors: "not_found".
expected<json> config_document(const run_directory& run);

} // namespace kernelmill::page
