#pragma once

// The views by name. A query is an object of texts and numbers; what a view does not know in it is
// an error. A head answers them from afar with the same functions.

#include <string>
#include <vector>

#include "launch/analysis/watch/world.hpp"

namespace kernelmill::watch {

/// "runs", "ps", "explain", "actors", "nodes", "gpus", "stats", "lineage", "logs", "turns", "top".
/// Errors: "usage" for an unknown view or key, and those of the view.
expected<json> answer(const world& in, const std::string& view, const json& query);

/// All runs of the root, in progress or not; `run`: that one alone. {run, where, sort}
expected<json> runs_view(const world& in, const json& query);

/// Live episodes of runs in progress, with totals. {run, where, sort, offset, limit}
expected<json> ps_view(const world& in, const json& query);

/// Why an episode or a run is where it is. {what}
expected<json> explain_view(const world& in, const json& query);

/// The actors of runs in progress, and those of a head's nodes. {run, where, sort, all, name}
expected<json> actors_view(const world& in, const json& query);

/// Machines that work: this one's runs, or a head's nodes. {where, sort}
expected<json> nodes_view(const world& in, const json& query);

/// Slots and GPUs. {where, sort}
expected<json> gpus_view(const world& in, const json& query);

/// The funnel of a run and where its time went. {run}
expected<json> stats_view(const world& in, const json& query);

/// An episode's turns by parent with its forks, and the graph of its candidates. {what}
expected<json> lineage_view(const world& in, const json& query);

/// A part of a run's log: from an offset on, or its last lines. {run, offset, tail, file}
expected<json> logs_view(const world& in, const json& query);

/// Committed turns of an episode from a number on, whether it has ended, and whether a process
/// works on the run. No actor is asked, so nothing that is busy delays it; with `streaming` one
/// is, and the document has what of the next turn has streamed in. {what, from, streaming}
expected<json> turns_view(const world& in, const json& query);

/// One screen of `top`: totals, nodes, slots, queues, and the episodes that matter, or of each run
/// those that are asked for. {run, where, sort, limit}
expected<json> top_view(const world& in, const json& query);

/// Keys that rows of a view may have, for conditions and sorting.
const std::vector<std::string>& keys_of_episodes();
const std::vector<std::string>& keys_of_runs();

} // namespace kernelmill::watch
