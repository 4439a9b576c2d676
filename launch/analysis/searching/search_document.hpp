#pragma once

// A search as the page shows it: the best so far, the tree, and the frontier, which is what the
// strategy improves next. All of it follows from stored records and from the run's configuration,
// of a search in progress, of one that was killed, and of one that has ended.

#include <optional>
#include <set>
#include <string>

#include "actors/search/strategy.hpp"
#include "launch/analysis/searching/search_story.hpp"
#include "messages/base/json_value.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill::searching {

/// What the configuration of a run says of its search.
struct search_plan {
  std::string task;
  uint32_t generations = 1; ///< at most
  uint32_t turns = 1;       ///< of an episode, at most
  search::strategy_settings strategy;
  search::search_budget budget;
};

/// Of config.json of a run; nothing where it asks for no search, or is of another version.
std::optional<search_plan> plan_of(const nlohmann::ordered_json& config);

/// read_story() with the texts of all candidates, which their niches follow from.
expected<search_story> read_whole_story(const store& from, const std::string& run,
                                        const artifact_store& texts);

/// What else is known of the search.
struct search_progress {
  bool live = false;             ///< a process works on it
  std::set<std::string> running; ///< names of the episodes that are in progress: "g3.e1"
  nlohmann::ordered_json ended;  ///< search.json of what is stored now; null: there is none
};

/// docs/reference/page-openapi.json says what is in it. `tree` has the last 10,000 episodes.
/// REQUIRES: the story is a whole one, of a run with this plan.
nlohmann::ordered_json search_document(const search_story& story, const search_plan& plan,
                                       const search_progress& now);

} // namespace kernelmill::searching
