#include "actors/cluster/cluster.hpp"

#include <algorithm>

#include "actors/snapshots.hpp"

namespace kernelmill {

namespace {

template <class Queue>
std::string queue_text(const char* kind, const Queue& queue) {
  return std::string{kind} + " " + std::to_string(queue.leased()) + " leased, " +
         std::to_string(queue.waiting()) + " waiting";
}

Message<wire::Snapshot> snapshot(const leasing_cluster_state& x) {
  bool busy = x.builds.leased() + x.evaluations.leased() + x.profiles.leased() > 0;
  auto detail = queue_text("builds", x.builds) + "; " + queue_text("evaluations", x.evaluations) +
                "; " + queue_text("profiles", x.profiles);
  return snapshot_of("cluster", {}, busy ? "working" : "idle", detail,
                     {{"compilers", x.builds.workers()},
                      {"runners", x.evaluations.workers()},
                      {"builds_waiting", x.builds.waiting()},
                      {"builds_done", x.builds.done()},
                      {"evaluations_waiting", x.evaluations.waiting()},
                      {"evaluations_done", x.evaluations.done()},
                      {"leased_again", x.builds.leased_again() + x.evaluations.leased_again() +
                                           x.profiles.leased_again()}});
}

// Jobs are leased for minutes; looking a few times in a lease is close enough.
std::chrono::milliseconds look_interval(const lease_policy& policy) {
  using std::chrono::milliseconds;
  return std::clamp(policy.lease / 16, milliseconds{10}, milliseconds{5000});
}

void look_later(cluster_actor::stateful_pointer<leasing_cluster_state> self) {
  auto& s = self->state;
  if (s.looking || s.builds.leased() + s.evaluations.leased() + s.profiles.leased() == 0) return;
  s.looking = true;
  self->delayed_send(self, look_interval(s.policy), atom::tick_v);
}

} // namespace

cluster_actor::behavior_type
leasing_cluster(cluster_actor::stateful_pointer<leasing_cluster_state> self, lease_policy policy) {
  self->state.policy = policy;
  self->set_down_handler([self](caf::down_msg& down) {
    auto& s = self->state;
    s.builds.leave(self, s.policy, down.source);
    s.evaluations.leave(self, s.policy, down.source);
    s.profiles.leave(self, s.policy, down.source);
    look_later(self);
  });
  return {
      [self](atom::status) { return snapshot(self->state); },
      [self](atom::build, const envelope& where, const Message<wire::BuildRequest>& request) {
        auto answer = self->state.builds.submit(self, self->state.policy, where, request);
        look_later(self);
        return answer;
      },
      [self](atom::evaluate, const envelope& where, const Message<wire::EvaluateRequest>& request) {
        auto answer = self->state.evaluations.submit(self, self->state.policy, where, request);
        look_later(self);
        return answer;
      },
      [self](atom::profile, const envelope& where, const Message<wire::ProfileRequest>& request) {
        auto answer = self->state.profiles.submit(self, self->state.policy, where, request);
        look_later(self);
        return answer;
      },
      [self](atom::lease, const compiler_actor& who, uint32_t credits) {
        self->state.builds.join(self, self->state.policy, who, credits);
        look_later(self);
      },
      [self](atom::lease, const gpu_runner_actor& who, uint32_t credits) {
        self->state.evaluations.join(self, self->state.policy, who, credits);
        look_later(self);
      },
      [self](atom::lease, const profiler_actor& who, uint32_t credits) {
        self->state.profiles.join(self, self->state.policy, who, credits);
        look_later(self);
      },
      [self](atom::tick) {
        auto& s = self->state;
        s.looking = false;
        s.builds.expire(self, s.policy);
        s.evaluations.expire(self, s.policy);
        s.profiles.expire(self, s.policy);
        look_later(self);
      },
  };
}

} // namespace kernelmill
