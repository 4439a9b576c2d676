#pragma once

// What a search knows of an episode that has ended: a node of its tree, what a prompt shows of it,
// and what it has used up of the budget.

#include <string>

#include "actors/episode/prompt.hpp"
#include "actors/search/search_tree.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill::search {

/// What episodes use up. Dollars are tokens times prices.
struct search_cost {
  uint64_t turns = 0;
  uint64_t prompt_tokens = 0, completion_tokens = 0;
  double slot_seconds = 0; ///< of evaluations and profiles, in a GPU's or a CPU's slot

  search_cost& operator+=(const search_cost& x);
};

/// What a search may use up; 0: no limit.
struct search_budget {
  double slot_seconds = 0;
  uint64_t tokens = 0; ///< of prompts and completions together
  double dollars = 0;
  double prompt_price = 0, completion_price = 0; ///< dollars for a million tokens

  double dollars_of(const search_cost& x) const;

  /// Whether there is something left. A generation that begins while there is may exceed it.
  bool allows(const search_cost& used) const;
};

struct searched_episode {
  std::string name;   ///< "g3.e1"
  node what;          ///< without its parent, whose position in the tree the caller knows
  std::string parent; ///< "g2.e0"; empty: the task alone
  uint32_t turn = 0;  ///< that the node is of: the fastest verified, else the last
  std::string source, language;
  std::string idea;     ///< first line of what the policy thought; at most 160 bytes
  std::string category; ///< of its verdict
  std::string report;   ///< what a policy is told of it, with its profile card
  search_cost cost;
};

struct report_form {
  size_t bytes = 2000; ///< at most
  profile_words profile = profile_words::card;
};

/// Of the records of an episode, with their texts.
searched_episode searched(wire::EpisodeHistory::Reader history, std::string name,
                          const report_form& form);

} // namespace kernelmill::search
