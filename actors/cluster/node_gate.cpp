#include "actors/cluster/node_gate.hpp"

#include <list>
#include <optional>
#include <set>

#include <caf/all.hpp>

#include "actors/gather.hpp"
#include "actors/made_messages.hpp"
#include "actors/snapshots.hpp"

namespace kernelmill {

namespace {

using std::chrono::milliseconds;

// Longer than a lease of the node's own cluster, which ends jobs that the slots cannot end.
constexpr std::chrono::seconds patience{720};
// A job that the head sent before it heard of the end is still on its way.
constexpr milliseconds farewell{500};

struct open_job {
  caf::actor_addr asker;
  envelope where;
};

struct node_gate_state {
  std::string name_of_node;
  cluster_actor slots;
  std::shared_ptr<const parcel_shelf> shelf;
  status_actor monitor;
  std::list<open_job> jobs;          // that are not answered yet
  std::set<caf::actor_addr> watched; // the actors that asked
  uint64_t done = 0;
  bool draining = false;
  std::optional<uint64_t> epoch;    // of the head that the node has joined
  std::set<uint64_t> former_epochs; // of heads that it has left

  static inline const char* name = "node-gate";

  // A head's first jobs may be here before the word that it was joined: only former ones are known.
  expected<void> check(const envelope& where) const {
    if (where.protocol != protocol_version)
      return configuration_error("protocol_differs",
                                 "failed on node " + name_of_node + ": the job speaks protocol " +
                                     std::to_string(where.protocol) + ", the node " +
                                     std::to_string(protocol_version),
                                 "install the same version on all machines");
    if (former_epochs.contains(where.epoch))
      return infrastructure_error("stale_epoch",
                                  "failed on node " + name_of_node +
                                      ": the job is of a head that the node has left");
    return {};
  }

  void join(uint64_t next) {
    if (epoch && *epoch != next) former_epochs.insert(*epoch);
    former_epochs.erase(next);
    epoch = next;
  }
};

using node_side = node_gate_actor::stateful_pointer<node_gate_state>;

expected<void> unpack(const parcel_shelf& shelf, wire::Parcel::Reader parcel,
                      wire::EvaluateRequest::Builder into) {
  auto task = shelf.task(parcel);
  KM_TRY(task);
  auto library = shelf.library(parcel);
  KM_TRY(library);
  into.setTaskDir(*task);
  into.setLibraryPath(*library);
  return {};
}

void look_whether_done(node_side self) {
  auto& s = self->state;
  if (s.draining && s.jobs.empty()) self->delayed_send(self, farewell, atom::drain_v);
}

// The asker is gone with its head, or with the wire to it. Its candidates have no use any more.
void end_jobs_of(node_side self, const caf::actor_addr& asker) {
  auto& s = self->state;
  s.watched.erase(asker);
  for (auto& x : s.jobs)
    if (x.asker == asker) self->send(s.slots, atom::cancel_v, x.where);
}

std::list<open_job>::iterator begin_job(node_side self, const caf::actor_addr& asker,
                                        const envelope& where) {
  auto& s = self->state;
  if (asker && s.watched.insert(asker).second) self->monitor(asker);
  return s.jobs.insert(s.jobs.end(), open_job{asker, where});
}

// The sender of the current message. Making the promise takes it away, so call this before.
caf::actor_addr asker_of(node_side self) {
  return caf::actor_cast<caf::actor_addr>(self->current_sender());
}

// Passes a job to the slots. `deliver` answers the head.
template <class Result, class Atom, class Request, class Deliver>
void hand_over(node_side self, const caf::actor_addr& asker, Atom what, const envelope& where,
               const Message<Request>& request, uint32_t deadline_ms, Deliver deliver) {
  auto job = begin_job(self, asker, where);
  self->request(self->state.slots, milliseconds{deadline_ms} + patience, what, where, request)
      .then(
          [self, deliver, job](const Message<Result>& result) mutable {
            self->state.jobs.erase(job);
            ++self->state.done;
            deliver(result);
            look_whether_done(self);
          },
          [self, deliver, job](caf::error& why) mutable {
            self->state.jobs.erase(job);
            deliver(fault_result<Result>(
                {fault_class::infrastructure, "worker_lost",
                 "failed on node " + self->state.name_of_node + ": " + self->system().render(why),
                 ""}));
            look_whether_done(self);
          });
}

caf::result<Message<wire::BuildResult>, Message<wire::Parcel>>
build_here(node_side self, const envelope& where, const Message<wire::BuildRequest>& request,
           const Message<wire::Parcel>& parcel) {
  auto asker = asker_of(self);
  auto answer = self->make_response_promise<Message<wire::BuildResult>, Message<wire::Parcel>>();
  auto deliver = [answer](const Message<wire::BuildResult>& result) mutable {
    auto x = result.open();
    expected<Message<wire::Parcel>> back = Message<wire::Parcel>{};
    if (x->getCompiled()) back = parcel_of_library(x->getLibrarySha256(), x->getLibraryPath());
    if (back)
      answer.deliver(result, *back);
    else
      answer.deliver(fault_result<wire::BuildResult>(back.error()), Message<wire::Parcel>{});
  };
  if (auto ok = self->state.check(where); !ok) {
    deliver(fault_result<wire::BuildResult>(ok.error()));
    return answer;
  }
  auto view = request.open();
  auto local = request;
  if (view->getTaskDigest().size() > 0) {
    auto task = self->state.shelf->task(*parcel.open());
    if (!task) {
      deliver(fault_result<wire::BuildResult>(task.error()));
      return answer;
    }
    local = changed(request, [&](wire::BuildRequest::Builder x) { x.setTaskDir(*task); });
  }
  hand_over<wire::BuildResult>(self, asker, atom::build_v, where, local, view->getDeadlineMs(),
                               deliver);
  return answer;
}

// An evaluation or a profile; `part` finds the evaluation in the request.
template <class Result, class Atom, class Request, class Part>
caf::result<Message<Result>> run_here(node_side self, Atom what, const envelope& where,
                                      const Message<Request>& request,
                                      const Message<wire::Parcel>& parcel, Part part) {
  auto asker = asker_of(self);
  auto answer = self->make_response_promise<Message<Result>>();
  if (auto ok = self->state.check(where); !ok) {
    answer.deliver(fault_result<Result>(ok.error()));
    return answer;
  }
  expected<void> ok;
  uint32_t deadline_ms = 0;
  auto local = changed(request, [&](typename Request::Builder x) {
    wire::EvaluateRequest::Builder evaluation = part(x);
    deadline_ms = evaluation.getDeadlineMs();
    ok = unpack(*self->state.shelf, *parcel.open(), evaluation);
  });
  if (ok)
    hand_over<Result>(self, asker, what, where, local, deadline_ms,
                      [answer](const auto& x) mutable { answer.deliver(x); });
  else
    answer.deliver(fault_result<Result>(ok.error()));
  return answer;
}

node_gate_actor::behavior_type node_gate(node_side self, std::string name, cluster_actor slots,
                                         std::shared_ptr<const parcel_shelf> shelf,
                                         status_actor monitor) {
  self->state.monitor = std::move(monitor);
  self->state.name_of_node = std::move(name);
  self->state.slots = std::move(slots);
  self->state.shelf = std::move(shelf);
  self->set_down_handler([self](caf::down_msg& down) { end_jobs_of(self, down.source); });
  return {
      [self](atom::status) -> caf::result<Message<wire::Snapshot>> {
        auto& s = self->state;
        auto own =
            signed_by(self, snapshot_of("node", s.name_of_node, s.draining ? "draining" : "serving",
                                        {}, {{"open", s.jobs.size()}, {"done", s.done}}));
        if (!s.monitor) return own;
        return self->delegate(
            spawn_gatherer(self->system(), {s.monitor}, own,
                           [](size_t) { return snapshot_of("monitor", {}, {}, {}, {}); }),
            atom::status_v);
      },
      [self](atom::build, const envelope& where, const Message<wire::BuildRequest>& request,
             const Message<wire::Parcel>& parcel) {
        return build_here(self, where, request, parcel);
      },
      [self](atom::evaluate, const envelope& where, const Message<wire::EvaluateRequest>& request,
             const Message<wire::Parcel>& parcel) {
        return run_here<wire::EvaluateResult>(self, atom::evaluate_v, where, request, parcel,
                                              [](auto x) { return x; });
      },
      [self](atom::profile, const envelope& where, const Message<wire::ProfileRequest>& request,
             const Message<wire::Parcel>& parcel) {
        return run_here<wire::ProfileResult>(self, atom::profile_v, where, request, parcel,
                                             [](auto x) { return x.getEvaluation(); });
      },
      [self](atom::cancel, const envelope& where) {
        if (self->state.check(where)) self->send(self->state.slots, atom::cancel_v, where);
      },
      [self](atom::join, uint64_t epoch) { self->state.join(epoch); },
      [self](atom::drain) {
        auto& s = self->state;
        // The head asks again when the node has joined again, and jobs may be on their way again.
        bool asked = self->current_sender().get() != self->ctrl();
        s.draining = true;
        if (asked)
          look_whether_done(self);
        else if (s.jobs.empty())
          self->quit(caf::exit_reason::normal);
      },
  };
}

} // namespace

node_gate_actor spawn_node_gate(caf::actor_system& system, std::string name, cluster_actor slots,
                                std::shared_ptr<const parcel_shelf> shelf, status_actor monitor,
                                bool own_thread) {
  if (!own_thread)
    return system.spawn(node_gate, std::move(name), std::move(slots), std::move(shelf),
                        std::move(monitor));
  return system.spawn<caf::detached>(node_gate, std::move(name), std::move(slots), std::move(shelf),
                                     std::move(monitor));
}

} // namespace kernelmill
