#pragma once

// What must hold of every life of a simulated cluster, and how a life that broke a promise is made
// simpler.

#include <functional>

#include "tests/sim/cluster/cluster.hpp"

namespace kernelmill::sim {

/// Most seconds of virtual time that runs may take after the last fault has ended.
inline constexpr double calm_bound = 900;

/// Most jobs that may be given out before one of its kind that was asked for earlier. Runs take
/// turns, and a job that failed goes first: this is far below what one run alone would take.
inline constexpr uint32_t overtaken_bound = 12;

/// What a life without faults says of each turn, and of each candidate.
struct truth {
  std::map<std::string, std::string> turns;      ///< by the record's key
  std::map<std::string, std::string> candidates; ///< by SHA-256: its verdict
};
truth truth_of(const life& calm);

/// Sentences, one for each promise that was broken; nothing when all were kept.
std::vector<std::string> broken_promises(const life& x, const truth& calm);

/// Leaves out faults, and shortens them, as long as `fails` says yes.
std::vector<fault> shrunk(std::vector<fault> faults,
                          const std::function<bool(const std::vector<fault>&)>& fails);

} // namespace kernelmill::sim
