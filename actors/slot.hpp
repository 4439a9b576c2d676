#pragma once

// What a build slot and a GPU slot have in common: a front that answers at once, and a worker on
// a thread of its own that blocks on a process.

#include <chrono>
#include <string>

#include <caf/error.hpp>
#include <caf/result.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/snapshots.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// State of the front. `Worker` is the typed actor that does the blocking work.
template <class Worker>
struct slot_state {
  std::string slot;
  Worker worker;
  uint32_t busy = 0;
  uint64_t done = 0, cached = 0, faults = 0;
  std::string doing;
  std::chrono::steady_clock::time_point since;

  Message<wire::Snapshot> snapshot(const char* role, const char* verb) const {
    std::string detail = doing;
    if (busy > 0) {
      auto age = std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
      detail += " for " + std::to_string(static_cast<int>(age * 1000)) + " ms";
    }
    return snapshot_of(role, slot, busy > 0 ? verb : "idle", detail,
                       {{"done", done}, {"cached", cached}, {"infrastructure_faults", faults}});
  }
};

/// Hands a request to the worker and counts what comes back. `limit`: a duration, or without end;
/// the worker keeps the deadline in the request, and the lease above it ends what the worker
/// cannot.
template <class Result, class Self, class Atom, class Request, class Limit, class... Extra>
caf::result<Message<Result>> work(Self* self, std::string doing, Atom what, const envelope& where,
                                  const Message<Request>& request, Limit limit,
                                  const Extra&... extra) {
  auto& state = self->state;
  if (state.busy++ == 0) state.since = std::chrono::steady_clock::now();
  state.doing = std::move(doing);
  auto answer = self->template make_response_promise<Message<Result>>();
  self->request(state.worker, limit, what, where, request, extra...)
      .then(
          [self, answer](const Message<Result>& result) mutable {
            auto& s = self->state;
            --s.busy;
            ++s.done;
            auto view = result.open();
            if (view->getFault().getClass() == wire::FaultClass::INFRASTRUCTURE) ++s.faults;
            if constexpr (std::is_same_v<Result, wire::BuildResult>)
              if (view->getCached()) ++s.cached;
            answer.deliver(result);
          },
          [self, answer](caf::error& why) mutable {
            --self->state.busy;
            ++self->state.faults;
            answer.deliver(std::move(why));
          });
  return answer;
}

} // namespace kernelmill
