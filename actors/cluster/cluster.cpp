#include "actors/cluster/cluster.hpp"

#include "actors/snapshots.hpp"

namespace kernelmill {

namespace {

template <class Queue>
std::string queue_text(const char* kind, const Queue& queue) {
  return std::string{kind} + " " + std::to_string(queue.leased()) + " leased, " +
         std::to_string(queue.waiting()) + " waiting";
}

Message<wire::Snapshot> snapshot(const leasing_cluster_state& x) {
  bool busy = x.leased() > 0;
  auto detail = queue_text("builds", x.builds) + "; " + queue_text("evaluations", x.evaluations) +
                "; " + queue_text("profiles", x.profiles);
  return snapshot_of("cluster", {}, busy ? "working" : "idle", detail,
                     {{"compilers", x.builds.workers()},
                      {"runners", x.evaluations.workers()},
                      {"builds_leased", x.builds.leased()},
                      {"builds_waiting", x.builds.waiting()},
                      {"builds_done", x.builds.done()},
                      {"evaluations_leased", x.evaluations.leased()},
                      {"evaluations_waiting", x.evaluations.waiting()},
                      {"evaluations_done", x.evaluations.done()},
                      {"profiles_leased", x.profiles.leased()},
                      {"profiles_waiting", x.profiles.waiting()},
                      {"leased_again", x.builds.leased_again() + x.evaluations.leased_again() +
                                           x.profiles.leased_again()},
                      {"leased_twice", x.builds.leased_twice() + x.evaluations.leased_twice() +
                                           x.profiles.leased_twice()}});
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
  });
  return {
      [self](atom::status) { return snapshot(self->state); },
      [self](atom::build, const envelope& where, const Message<wire::BuildRequest>& request) {
        return self->state.builds.submit(self, self->state.policy, where, request);
      },
      [self](atom::evaluate, const envelope& where, const Message<wire::EvaluateRequest>& request) {
        return self->state.evaluations.submit(self, self->state.policy, where, request);
      },
      [self](atom::profile, const envelope& where, const Message<wire::ProfileRequest>& request) {
        return self->state.profiles.submit(self, self->state.policy, where, request);
      },
      [self](atom::lease, const compiler_actor& who, uint32_t credits) {
        self->state.builds.join(self, self->state.policy, who, credits);
      },
      [self](atom::lease, const gpu_runner_actor& who, uint32_t credits) {
        self->state.evaluations.join(self, self->state.policy, who, credits);
      },
      [self](atom::lease, const profiler_actor& who, uint32_t credits) {
        self->state.profiles.join(self, self->state.policy, who, credits);
      },
      [self](atom::retire, const caf::actor_addr& who) {
        auto& s = self->state;
        s.builds.retire(self, s.policy, who);
        s.evaluations.retire(self, s.policy, who);
        s.profiles.retire(self, s.policy, who);
      },
      [self](atom::tick) {
        auto& s = self->state;
        s.looking = false;
        s.builds.expire(self, s.policy);
        s.evaluations.expire(self, s.policy);
        s.profiles.expire(self, s.policy);
        if (s.leased() > 0) s.look_later(self);
      },
  };
}

} // namespace kernelmill
