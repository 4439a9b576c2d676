#pragma once

// Which rows are wanted.

#include <set>

#include "storage/export/rows/material.hpp"

namespace kernelmill::exports {

/// An empty set takes all.
struct filter {
  std::set<std::string> splits, verbs;

  // Of turns, for forms whose rows are of turns or episodes.
  std::set<std::string> transitions; ///< how the code came from what was before
  std::set<std::string> kinds; ///< of transitions: of the turn, or of one of its calls of tools
  bool patch_bearing = false;  ///< a candidate was made by a patch
  std::set<std::string> governance; ///< of the episode: "usable_positive_sft", ...
  std::optional<double> min_reward;
  bool accepted = false;
  bool best_of_episode = false;

  bool by_calls() const { return !kinds.empty() || patch_bearing; }

  bool of_turns() const {
    return !transitions.empty() || by_calls() || !governance.empty() || min_reward || accepted ||
           best_of_episode;
  }
};

/// Of a group, by its task's split and verb.
bool takes(const filter& f, const std::string& split, const std::string& verb);
bool takes(const filter& f, const episode& x); ///< by its governance alone

/// By everything but best_of_episode; never a turn that the infrastructure lost, or that a fork
/// shares.
bool takes(const filter& f, const turn& x);

/// Whether an episode is taken as a whole: the filters of turns ask about its best turn, those of
/// calls about any of its turns.
bool takes_episode(const filter& f, const episode& x);

/// Positions of the turns of an episode that are taken, in order.
std::vector<size_t> turns_taken(const filter& f, const episode& x);

/// What `sft` takes when no governance is named: accepted answers of episodes that are
/// usable_positive_sft.
filter with_defaults_of_sft(filter f);

} // namespace kernelmill::exports
