#pragma once

// What a search has found and used up, read from its store.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/search/searched_episode.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::searching {

/// How far the search was when an episode became the best so far.
struct best_so_far {
  uint32_t episode = 0;     ///< position among the episodes
  search::search_cost used; ///< by this episode and all before it
};

struct search_story {
  std::vector<search::searched_episode> episodes; ///< in the order in which they were chosen
  std::vector<best_so_far> improvements;
  search::search_cost used; ///< by all
  uint32_t verified = 0, failed = 0, lost = 0;
  uint32_t unchanged = 0;     ///< of those that failed: copies of what their prompts showed
  uint32_t generations = 0;   ///< of which something is stored
  uint32_t finished = 0;      ///< generations that have ended
  std::vector<uint32_t> open; ///< positions of the episodes that have not ended

  /// The fastest verified candidates by lower bound, each once, the fastest first.
  std::vector<uint32_t> fastest() const;
};

/// Errors: those of the store. Sources and ideas that are artifacts are left out.
expected<search_story> read_story(const store& from, const std::string& run);

/// "g3.e1.t0"
std::string turn_name(const search::searched_episode& x);

} // namespace kernelmill::searching
