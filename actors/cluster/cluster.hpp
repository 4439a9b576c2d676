#pragma once

#include <map>

#include "actors/cluster/work_queue.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct leasing_cluster_state {
  work_queue<compiler_actor, atom::build, wire::BuildRequest, wire::BuildResult> builds{"build"};
  work_queue<gpu_runner_actor, atom::evaluate, wire::EvaluateRequest, wire::EvaluateResult>
      evaluations{"evaluate"};
  work_queue<profiler_actor, atom::profile, wire::ProfileRequest, wire::ProfileResult> profiles{
      "profile"};
  lease_policy policy;
  std::map<caf::actor_addr, uint32_t> layers; // of the sandbox, by worker; no entry: all layers
  bool looking = false;                       // a look at the leases is due

  size_t leased() const { return builds.leased() + evaluations.leased() + profiles.leased(); }

  uint32_t layers_of(const caf::actor_addr& who) const {
    auto i = layers.find(who);
    return i == layers.end() ? all_layers : i->second;
  }

  // Jobs are leased for minutes, but a candidate of a run that is gone is ended sooner.
  template <class Self>
  void look_later(Self* self) {
    using std::chrono::milliseconds;
    if (looking) return;
    looking = true;
    auto interval = std::clamp(policy.lease / 16, milliseconds{10}, milliseconds{1000});
    if (policy.hedge_factor > 0) interval = std::min(interval, policy.hedge_floor / 2);
    self->delayed_send(self, interval, atom::tick_v);
  }

  static inline const char* name = "leasing-cluster";
};

/// What most bursts of a machine's faults are shorter than.
inline constexpr std::chrono::seconds rest_of_faults{3};

/// Of the slots of one machine, which have no others to wait for.
inline lease_policy leases_of_own_slots(std::chrono::milliseconds lease) {
  lease_policy result{lease, 3, false};
  result.rest = rest_of_faults;
  return result;
}

/// The work queues of one process: requests wait here until a worker has a credit for them.
cluster_actor::behavior_type
leasing_cluster(cluster_actor::stateful_pointer<leasing_cluster_state> self, lease_policy policy);

} // namespace kernelmill
