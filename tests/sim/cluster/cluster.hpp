#pragma once

// A head, three nodes, three policy servers, two runs and their user, in one thread on virtual
// time. Real: head, policy pool, runs, episodes, governance, group commit, work queues, the
// workers that stand for nodes, gates, parcels. docs/explanation/simulation.md says what is not.

#include <optional>

#include "actors/head/head.hpp"
#include "tests/sim/cluster/network.hpp"
#include "tests/sim/cluster/user.hpp"

namespace kernelmill::sim {

inline constexpr uint32_t node_count = 3;
inline constexpr uint32_t groups_of_run = 3, group_size = 2, max_turns = 3, max_live = 4;

/// What a life of the cluster came to.
struct life {
  bool ended = false;     ///< both runs have finished
  double faults_end = 0;  ///< virtual seconds
  double seconds = 0;     ///< virtual, to the end
  uint32_t overtaken = 0; ///< most jobs that were given out before one that had asked earlier
  std::map<std::string, uint64_t> turns_told; ///< by the head, of the runs that have finished
  std::shared_ptr<sim_disk> disk;
  std::set<std::string> lies; ///< SHA-256 of candidates that a policy server gave to the wrong one
  std::map<std::string, uint64_t> marks;
  uint64_t steps = 0, trace_hash = 0;
};

/// Lives through the faults until both runs have finished, or virtual time is over. `folder` is
/// for parcels and is empty. `calm_bound`: seconds after the last fault that may pass.
life live(uint64_t seed, const std::vector<fault>& faults, defect broken, const std::string& folder,
          const std::string& task_folder, double calm_bound);

} // namespace kernelmill::sim
