#pragma once

// The reward of a turn. Everything that may enter a reward is a member of reward_facts. The labels
// that governance gives the data are no members, so they cannot.

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "actors/governance/judge.hpp"

namespace kernelmill {

struct reward_facts {
  bool format = false;
  bool build = false;
  bool accepted = false;                            ///< every gate before `performance` passed
  bool diagnosis = false;                           ///< the right label of a `diagnose` task
  bool critical = false;                            ///< a critical integrity finding
  bool unchanged = false;                           ///< a copy of what was shown
  double share = 0;                                 ///< of the task's cases that passed, 0 to 1
  std::optional<double> speedup_low = std::nullopt; ///< nothing when it was not measured
};

struct reward_part {
  const char* name;
  double value;
  double weight;
};

struct reward_breakdown {
  double total = 0;
  std::array<reward_part, 7> parts;
};

reward_breakdown reward_of(const reward_facts& facts, const reward_config& config);

} // namespace kernelmill
