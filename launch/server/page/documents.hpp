#pragma once

// What the page shows of a run beyond the views of launch/analysis/watch: all of its episodes, one
// episode turn by turn, rewards by position, findings, and which turn held which slot when.

#include <string>
#include <vector>

#include "launch/analysis/watch/world.hpp"
#include "launch/server/page/run_facts.hpp"

namespace kernelmill::page {

using watch::json;

/// Texts of a transcript longer than this, in bytes, are cut; the whole is another question.
inline constexpr size_t shown_bytes = 200'000;

/// Finds a run by the name of its folder below the root; no path is followed. Errors: "not_found".
expected<run_directory> run_below(const watch::world& in, const std::string& name);

/// Every episode of a run, live or ended. {where, sort, offset, limit}
expected<json> episodes_document(const watch::world& in, const run_directory& run,
                                 const run_facts& facts, const json& query);

/// An episode with its turns: prompt, completion, candidate, build, cases, gates, findings, timing,
/// profile, feedback, calls of tools; and the graph of its candidates. Errors: "not_found".
expected<json> episode_document(const watch::world& in, const run_directory& run,
                                const std::string& episode);

/// One text of a turn, whole: "completion", "candidate", "feedback", "build". Errors: "not_found".
expected<std::string> turn_text(const watch::world& in, const run_directory& run,
                                const std::string& turn, const std::string& part);

/// Reward of rewarded turns, and speedup of accepted, timed ones, by the turn's position in its
/// episode, from 1: mean (of speedups the geometric one), how many, and the band from the tenth to
/// the ninetieth part of a hundred.
expected<json> positions_document(const run_facts& facts, const json& query);

/// Findings of integrity with their evidence, the latest first. {where, sort, offset, limit}
expected<json> findings_document(const run_facts& facts, const json& query);

/// Evaluations by the device that did them, with begin and end, the latest first. {limit}
expected<json> lanes_document(const run_facts& facts, const json& query);

/// Policy servers of runs in progress: window, requests, errors, tokens.
expected<json> policies_document(const watch::world& in);

/// Cuts a list by the query's `offset` and `limit`; adds "matching", "offset" and the rows below
/// `name`. A limit of 0 is 100.
json paged(std::vector<json> rows, const json& query, const char* name);

} // namespace kernelmill::page
