#include "actors/cluster/cluster.hpp"

#include <algorithm>

#include "actors/snapshots.hpp"
#include "messages/base/clock.hpp"

namespace kernelmill {

namespace {

template <class Queue>
std::string queue_text(const char* kind, const Queue& queue) {
  return std::string{kind} + " " + std::to_string(queue.leased()) + " leased, " +
         std::to_string(queue.waiting()) + " waiting";
}

using now_point = caf::actor_clock::time_point;

std::string job_name(const envelope& where) {
  std::string result;
  uint64_t run = 0;
  append_waiting(result, run, where);
  return result;
}

void put(capnp::List<wire::Quantity>::Builder list,
         std::initializer_list<std::pair<const char*, double>> numbers) {
  unsigned i = 0;
  for (auto& [name, value] : numbers) {
    list[i].setName(name);
    list[i++].setValue(value);
  }
}

template <class View>
void show_job(wire::Snapshot::Builder to, const char* actor, const char* kind, const View& x) {
  to.setActor(actor);
  to.setId(job_name(x.where));
  to.setState(kind);
  to.setSince(seconds_since_1970() - x.seconds);
  to.setDetail(x.last_error);
  put(to.initNumbers(3), {{"attempt", x.attempt},
                          {"attempts_allowed", x.attempts_allowed},
                          {"worker", x.worker ? static_cast<double>(x.worker.id()) : 0}});
}

// One queue: how many jobs wait and for how long, which workers are busy, and which jobs come next.
// The line is one text: ten thousand children would cost more than they tell.
template <class Queue>
void show_queue(wire::Snapshot::Builder to, const char* kind, Queue& queue, now_point now) {
  constexpr unsigned most_tried_again = 100;
  to.setActor("queue");
  to.setId(kind);
  to.setState(queue.waiting() == 0   ? queue.leased() > 0 ? "working" : "idle"
              : queue.credits() == 0 ? "starved"
                                     : "working");
  std::string line;
  uint64_t run = 0;
  double oldest = 0;
  unsigned tried_again = 0;
  queue.for_each_waiting(now, [&](const auto& x) {
    append_waiting(line, run, x.where);
    oldest = std::max(oldest, x.seconds);
    tried_again += !x.last_error.empty();
  });
  tried_again = std::min(tried_again, most_tried_again);
  to.setDetail(line);
  put(to.initNumbers(7), {{"workers", static_cast<double>(queue.workers())},
                          {"credits", static_cast<double>(queue.credits())},
                          {"leased", static_cast<double>(queue.leased())},
                          {"waiting", static_cast<double>(queue.waiting())},
                          {"done", static_cast<double>(queue.done())},
                          {"mean_seconds", queue.mean_seconds()},
                          {"oldest_wait_seconds", oldest}});
  auto children = to.initChildren(static_cast<unsigned>(queue.leased()) + tried_again);
  unsigned i = 0;
  queue.for_each_lease(now, [&](const auto& x) { show_job(children[i++], "lease", kind, x); });
  queue.for_each_waiting(now, [&](const auto& x) {
    if (!x.last_error.empty() && i < children.size())
      show_job(children[i++], "waiting_again", kind, x);
  });
}

Message<wire::Snapshot> totals(const leasing_cluster_state& x) {
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

Message<wire::Snapshot> snapshot(leasing_cluster_state& x, now_point now) {
  auto head = totals(x);
  return build<wire::Snapshot>([&](wire::Snapshot::Builder to) {
    auto from = head.open();
    to.setActor(from->getActor());
    to.setState(from->getState());
    to.setDetail(from->getDetail());
    to.setNumbers(from->getNumbers());
    auto queues = to.initChildren(3);
    show_queue(queues[0], "build", x.builds, now);
    show_queue(queues[1], "evaluate", x.evaluations, now);
    show_queue(queues[2], "profile", x.profiles, now);
  });
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
    s.layers.erase(down.source);
  });
  return {
      [self](atom::status) { return signed_by(self, snapshot(self->state, self->clock().now())); },
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
        auto& s = self->state;
        s.builds.join(self, s.policy, who, credits, s.layers_of(who.address()));
      },
      [self](atom::lease, const gpu_runner_actor& who, uint32_t credits) {
        auto& s = self->state;
        s.evaluations.join(self, s.policy, who, credits, s.layers_of(who.address()));
      },
      [self](atom::lease, const profiler_actor& who, uint32_t credits) {
        auto& s = self->state;
        s.profiles.join(self, s.policy, who, credits, s.layers_of(who.address()));
      },
      [self](atom::lease, const caf::actor_addr& who, uint32_t layers) {
        self->state.layers[who] = layers;
      },
      [self](atom::cancel, const envelope& where) {
        auto& s = self->state;
        const auto& who = self->current_sender();
        s.builds.cancel(self, s.policy, where, who);
        s.evaluations.cancel(self, s.policy, where, who);
        s.profiles.cancel(self, s.policy, where, who);
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
