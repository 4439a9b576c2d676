#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace kernelmill::commands {

/// The candidates of an episode as a tree, one a line, and below it what contradicts itself in its
/// records; `document` has the keys of watch::add_candidates. Empty without candidates.
std::string candidate_tree(const nlohmann::ordered_json& document);

/// "c3 patched, benchmarked, speedup 1.60 [1.50, 1.70], perf_transform, best, active".
std::string candidate_text(const nlohmann::ordered_json& candidate);

} // namespace kernelmill::commands
