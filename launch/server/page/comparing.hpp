#pragma once

// What a reader holds against each other: the members of a group, and two runs, groups, episodes or
// turns side by side.

#include "launch/analysis/watch/world.hpp"
#include "launch/server/page/kept_runs.hpp"

namespace kernelmill::page {

using watch::json;

/// Every group of a run with its members: best rewards, their mean and deviation, outcomes.
/// {where, sort, offset, limit}
expected<json> groups_document(const run_facts& facts, const json& query);

/// What `kernelmill compare A B --json` prints. A side is RUN, RUN/g3, RUN/g3.e1 or RUN/g3.e1.t2,
/// its run named by its folder. {a, b} Errors: "usage", "not_found".
expected<json> compare_document(const watch::world& in, const json& query, kept_runs& kept);

} // namespace kernelmill::page
