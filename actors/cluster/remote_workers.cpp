#include "actors/cluster/remote_workers.hpp"

#include <caf/all.hpp>

#include "actors/made_messages.hpp"
#include "actors/snapshots.hpp"

namespace kernelmill {

namespace {

using std::chrono::milliseconds;

// Longer than the node's own limit, which is longer than the deadline in the request.
constexpr std::chrono::seconds answer_patience{750};

struct remote_worker_state {
  std::shared_ptr<remote_node> node;
  uint32_t busy = 0;
  uint64_t done = 0, lost = 0;

  Message<wire::Snapshot> snapshot(const char* role) const {
    return snapshot_of(role, node->name, busy > 0 ? "working" : "idle", "on another node",
                       {{"busy", busy}, {"done", done}, {"lost", lost}});
  }
};

struct remote_compiler_state : remote_worker_state {
  static inline const char* name = "remote-compiler";
};
struct remote_runner_state : remote_worker_state {
  static inline const char* name = "remote-runner";
};
struct remote_profiler_state : remote_worker_state {
  static inline const char* name = "remote-profiler";
};

template <class Self>
void serve(Self* self, std::shared_ptr<remote_node> node) {
  // A request to a node that is gone is never answered: CAF drops it silently.
  self->set_down_handler([self](caf::down_msg& down) { self->quit(std::move(down.reason)); });
  self->monitor(node->gate);
  self->state.node = std::move(node);
}

parcel_packer::needs needs_of(wire::EvaluateRequest::Reader x) {
  return {x.getTaskId(), x.getTaskDigest(), x.getTaskDir(), x.getLibrarySha256(),
          x.getLibraryPath()};
}

// Sends a job and delivers the answer. A node that lost what it was sent gets it again.
// `Extra` is Message<wire::Parcel> where the answer brings a library, or nothing.
template <class Atom, class Request, class Result, class... Extra>
struct errand {
  envelope where;
  Message<Request> request;
  parcel_packer::needs needs;
  milliseconds timeout;
  caf::typed_response_promise<Message<Result>> answer;
  bool again = false;

  template <class Self, class Finish>
  static void run(Self* self, std::shared_ptr<errand> x, Finish finish) {
    auto parcel = self->state.node->packer.pack(x->needs);
    if (!parcel) {
      x->answer.deliver(fault_result<Result>(parcel.error()));
      return;
    }
    ++self->state.busy;
    self->request(self->state.node->gate, x->timeout, Atom{}, x->where, x->request, *parcel)
        .then(
            [self, x, finish](const Message<Result>& result, const Extra&... extra) {
              auto& s = self->state;
              --s.busy;
              auto fault = result.open()->getFault();
              bool missing = fault.getCategory() == "parcel_missing";
              if (missing && !x->again) {
                x->again = true;
                s.node->packer.forget(x->needs);
                return run(self, x, finish);
              }
              ++s.done;
              x->answer.deliver(finish(result, extra...));
            },
            [self, x](caf::error& why) {
              --self->state.busy;
              ++self->state.lost;
              x->answer.deliver(std::move(why));
            });
  }
};

template <class Atom, class Result, class... Extra, class Self, class Request, class Finish>
caf::result<Message<Result>> send(Self* self, const envelope& where,
                                  const Message<Request>& request, parcel_packer::needs needs,
                                  uint32_t deadline_ms, Finish finish) {
  using job = errand<Atom, Request, Result, Extra...>;
  auto x = std::make_shared<job>();
  x->where = where;
  x->where.epoch = self->state.node->epoch;
  x->request = request;
  x->needs = std::move(needs);
  x->timeout = milliseconds{deadline_ms} + answer_patience;
  x->answer = self->template make_response_promise<Message<Result>>();
  job::run(self, x, finish);
  return x->answer;
}

// Tells the node that the caller no longer waits for a job.
template <class Self>
void pass_on_cancel(Self* self, envelope where) {
  where.epoch = self->state.node->epoch;
  self->send(self->state.node->gate, atom::cancel_v, where);
}

// The library was built elsewhere; its path must be one of this machine.
Message<wire::BuildResult> bring_home(const parcel_shelf& shelf,
                                      const Message<wire::BuildResult>& result,
                                      const Message<wire::Parcel>& parcel) {
  auto view = result.open();
  if (!view->getCompiled()) return result;
  auto path = shelf.library(*parcel.open());
  if (!path) return fault_result<wire::BuildResult>(path.error());
  return changed(result, [&](wire::BuildResult::Builder x) { x.setLibraryPath(*path); });
}

compiler_actor::behavior_type
remote_compiler(compiler_actor::stateful_pointer<remote_compiler_state> self,
                std::shared_ptr<remote_node> node) {
  serve(self, std::move(node));
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot("compiler")); },
      [self](atom::build, const envelope& where, const Message<wire::BuildRequest>& request) {
        auto x = request.open();
        parcel_packer::needs needs{x->getTask(), x->getTaskDigest(), x->getTaskDir(), {}, {}};
        auto finish = [shelf = self->state.node->shelf](const auto& result, const auto& parcel) {
          return bring_home(*shelf, result, parcel);
        };
        return send<atom::build, wire::BuildResult, Message<wire::Parcel>>(
            self, where, request, std::move(needs), x->getDeadlineMs(), finish);
      },
  };
}

gpu_runner_actor::behavior_type
remote_runner(gpu_runner_actor::stateful_pointer<remote_runner_state> self,
              std::shared_ptr<remote_node> node) {
  serve(self, std::move(node));
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot("gpu_runner")); },
      [self](atom::evaluate, const envelope& where, const Message<wire::EvaluateRequest>& request) {
        auto x = request.open();
        return send<atom::evaluate, wire::EvaluateResult>(
            self, where, request, needs_of(*x), x->getDeadlineMs(),
            [](const auto& result) { return result; });
      },
      [self](atom::cancel, const envelope& where) { pass_on_cancel(self, where); },
  };
}

profiler_actor::behavior_type
remote_profiler(profiler_actor::stateful_pointer<remote_profiler_state> self,
                std::shared_ptr<remote_node> node) {
  serve(self, std::move(node));
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot("profiler")); },
      [self](atom::profile, const envelope& where, const Message<wire::ProfileRequest>& request) {
        auto view = request.open();
        auto x = view->getEvaluation();
        return send<atom::profile, wire::ProfileResult>(self, where, request, needs_of(x),
                                                        x.getDeadlineMs(),
                                                        [](const auto& result) { return result; });
      },
      [self](atom::cancel, const envelope& where) { pass_on_cancel(self, where); },
  };
}

template <class F>
auto spawned(caf::actor_system& system, F worker, std::shared_ptr<remote_node> node) {
  return node->own_threads ? system.spawn<caf::detached>(worker, node) : system.spawn(worker, node);
}

} // namespace

compiler_actor spawn_remote_compiler(caf::actor_system& system, std::shared_ptr<remote_node> node) {
  return spawned(system, remote_compiler, std::move(node));
}

gpu_runner_actor spawn_remote_runner(caf::actor_system& system, std::shared_ptr<remote_node> node) {
  return spawned(system, remote_runner, std::move(node));
}

profiler_actor spawn_remote_profiler(caf::actor_system& system, std::shared_ptr<remote_node> node) {
  return spawned(system, remote_profiler, std::move(node));
}

} // namespace kernelmill
