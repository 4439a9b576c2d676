#pragma once

// The reward of a turn. Everything that may enter a reward is a member of reward_facts, or an act
// of the turn (actors/episode/tools/shaping.hpp). The labels that governance gives the data are no
// members, so they cannot.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "actors/governance/judge.hpp"

namespace kernelmill {

struct reward_facts {
  bool format = false;
  bool build = false;
  bool correct = false; ///< the gate of that name passed, as the next two
  bool deterministic = false;
  bool fast = false;                                ///< the gate `performance`; false of a copy
  bool accepted = false;                            ///< every gate before `performance` passed
  bool success = false;                             ///< is_success()
  bool diagnosis = false;                           ///< the right label of a `diagnose` task
  bool critical = false;                            ///< a critical integrity finding
  bool unchanged = false;                           ///< a copy of what was shown
  bool borrowed = false;                            ///< of what is not the task's own: an example
  double share = 0;                                 ///< of the task's cases that passed, 0 to 1
  std::optional<double> speedup_low = std::nullopt; ///< nothing when it was not measured
  double baseline_ms = 0, roofline_ms = 0;          ///< 0: not known
  size_t thought_bytes = 0;                         ///< of the answer
  size_t kernel_bytes = 0;
};

struct reward_part {
  const char* name;
  double value;
  double weight;
};

/// Parts that only some presets know are listed where they have a weight.
struct reward_breakdown {
  double total = 0;
  std::vector<reward_part> parts;
};

reward_breakdown reward_of(const reward_facts& facts, const reward_config& config);

/// gpu_rl's success of a task: accepted, no copy of what was shown and, where a faster program was
/// asked for, fast enough.
inline bool is_success(std::string_view verb, bool accepted, bool original, bool fast) {
  return accepted && original && (fast || verb != "optimize");
}

/// A number of reward_config, for those who treat all alike. `key` stands below `reward` in the
/// configuration.
struct reward_number {
  const char* key;
  double reward_config::*member;
  double low, high;
  bool is_weight; ///< of a part that can be earned
};
std::span<const reward_number> reward_numbers();

/// Whether a reward depends on the answer's thought or on the kernel's length, so that facts
/// without these texts are not enough for it.
inline bool reads_answer(const reward_config& config) {
  return config.thinking != 0 || config.length != 0;
}

} // namespace kernelmill
