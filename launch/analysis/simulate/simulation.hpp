#pragma once

// A run on a cluster that need not exist: episodes pass through the policy, a build, an evaluation
// and a commit, turn by turn, and wait where all servers of a stage are taken. Discrete events,
// virtual time, no actors. What a turn takes at each stage depends on the seed and on the turn
// alone, so two clusters are compared on the very same work.

#include <cstdint>
#include <string>
#include <vector>

#include "launch/analysis/simulate/distribution.hpp"

namespace kernelmill::simulating {

/// What is to be done.
struct workload {
  uint64_t episodes = 1;
  uint32_t max_turns = 1;
  std::vector<uint32_t> turns; ///< measured turns of episodes; empty: each takes max_turns
  double builds = 1;           ///< share of answers that hold a kernel
  double cached = 0;           ///< share of builds that are in the cache and take no time
  double evaluations = 1;      ///< share of builds that compile
  distribution policy, build, evaluate, commit;
  uint64_t seed = 1;
};

/// What there is to do it with.
struct cluster_size {
  uint32_t max_live = 256; ///< episodes at once
  uint32_t servers = 1;    ///< of the policy
  uint32_t in_flight = 64; ///< requests that one of them answers at once
  uint32_t nodes = 1;
  uint32_t compilers = 1; ///< of a node
  uint32_t slots = 1;     ///< of a node, for evaluations
};

struct stage_figures {
  std::string name; ///< "policy", "build", "evaluate", "commit"
  uint64_t servers = 0;
  uint64_t jobs = 0;
  double busy = 0;      ///< share of the servers' time
  double busy_full = 0; ///< the same until three quarters of the turns are done
  double wait_mean = 0; ///< seconds before a server is free
  double wait_p50 = 0, wait_p90 = 0;
  double queue_mean = 0; ///< jobs that wait, over the whole run
  uint64_t queue_most = 0;
};

struct simulation_result {
  std::vector<stage_figures> stages; ///< in the order of a turn
  double seconds = 0;                ///< of the whole run
  uint64_t episodes = 0, turns = 0;
  double live_mean = 0;
  double episode_mean = 0; ///< seconds from admission to end
  /// The name of a stage, "episode.max_live", or "the run's length": too few episodes to fill
  /// anything.
  std::string limit;

  double episodes_per_hour() const { return seconds > 0 ? 3600 * episodes / seconds : 0; }
  double turns_per_hour() const { return seconds > 0 ? 3600 * turns / seconds : 0; }
};

/// The commit is one writer that takes all waiting turns at once, as lineage does. REQUIRES: every
/// count of `on` is at least 1.
simulation_result simulate(const workload& what, const cluster_size& on);

/// The same work on 1, 2, 4 and 8 times the nodes, the servers, and both.
struct alternative {
  uint32_t nodes = 1, servers = 1; ///< times those that are there
  simulation_result result;
};
std::vector<alternative> alternatives(const workload& what, const cluster_size& on);

} // namespace kernelmill::simulating
