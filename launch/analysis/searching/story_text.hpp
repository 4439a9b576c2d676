#pragma once

// A search for people and as JSON.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/analysis/searching/search_story.hpp"

namespace kernelmill::searching {

/// What was tried and used up, and the best so far against turns, tokens and slot seconds as a
/// table of at most `width` columns.
std::string story_text(const search_story& x, const std::string& strategy, size_t width);

/// The keys "generations", "candidates", "verified", "failed", "unchanged" (of the failed), "lost",
/// "used", "best_so_far" and "tree": every episode with its parent.
nlohmann::ordered_json story_json(const search_story& x);

} // namespace kernelmill::searching
