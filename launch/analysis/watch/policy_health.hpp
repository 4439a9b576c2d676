#pragma once

// How policy servers do, in words for people.

#include <string>
#include <string_view>
#include <vector>

#include "launch/analysis/watch/live.hpp"

namespace kernelmill::watch {

struct policy_health {
  std::string server; ///< of a pool: the server's key; empty: the run's policy as a whole
  std::string words;  ///< "answers; 3 in flight"
  bool is_well = true;
};

/// Whether the server is there and what it says cannot be read; else it is away.
bool answers_nonsense(std::string_view category);

/// The run's policy, then each server of its pool.
std::vector<policy_health> health_of_policy(const live_view& of);

} // namespace kernelmill::watch
