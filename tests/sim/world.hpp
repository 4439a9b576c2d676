#pragma once

// A whole run in one thread: real run, episode, cluster, lineage and governance actors on CAF's
// deterministic scheduler; a policy, compilers and runners that fail as a seed says; a sink that
// is sometimes full; virtual time. The same seed gives the same interleaving, message by message.

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include "actors/run/run.hpp"
#include "tests/oracles/memory_sink.hpp"

namespace kernelmill::sim {

/// Chances are per request, times in milliseconds of virtual time.
struct faults {
  double policy_error = 0;  ///< the client gives up with an infrastructure fault
  double policy_silent = 0; ///< no answer ever
  int lost_member = -1;     ///< of each group: the client gives up its second turn
  double worker_silent = 0; ///< a compiler or runner takes a job and never answers
  double worker_dies = 0;   ///< it ends with the job; a new one joins a second later
  double worker_fault = 0;  ///< it answers with an infrastructure fault
  double not_timed = 0;     ///< a runner cannot time a right candidate
  double sink_full = 0;     ///< a transaction fails
  double node_dies = 0;     ///< per scheduler step: everything is gone but the sink
  int slowest_answer_ms = 2000;
};

struct plan {
  uint32_t groups = 2;
  uint32_t group_size = 3;
  uint32_t quorum = 0;
  uint32_t max_turns = 3;
  uint32_t workers = 3; ///< compilers, and as many runners
  uint32_t max_live = 4;
  uint32_t lease_slack_ms = 0; ///< 0: as it is by itself
  bool tools = false;          ///< episodes of mode `tools`
  reward_config rewards = {};
  std::string profiled_backend = {}; ///< "cuda": correct turns are to be profiled, of that backend
};

struct outcome {
  bool ended = false;  ///< the run answered
  bool killed = false; ///< node_dies struck
  std::optional<Message<wire::RunSummary>> summary;
  uint64_t steps = 0;
  double virtual_seconds = 0;
  uint64_t trace_hash = 0; ///< of every step: which actor ran, and when
};

/// Refuses transactions as `faults.sink_full` says, else keeps them; survives the node.
class unreliable_sink final : public memory_sink {
public:
  unreliable_sink(uint64_t seed) : random_(seed) {
    // nop
  }
  double full = 0;

  expected<std::vector<bool>> commit(const std::vector<pending_record>& batch) override;

private:
  std::mt19937_64 random_;
};

/// Runs one node until the run has answered, the node dies, or virtual time passes a day.
outcome run_node(uint64_t seed, const plan& what, const faults& how,
                 std::shared_ptr<unreliable_sink> sink, bool resume);

} // namespace kernelmill::sim
