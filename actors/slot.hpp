#pragma once

// What a build slot and a GPU slot have in common: a front that answers at once, and a worker on
// a thread of its own that blocks on a process.

#include <algorithm>
#include <iterator>
#include <list>
#include <string>

#include <caf/error.hpp>
#include <caf/result.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/snapshots.hpp"
#include "messages/actors.hpp"
#include "messages/base/clock.hpp"

namespace kernelmill {

/// A job that the worker has, or that waits in its mailbox behind others.
struct slot_job {
  std::string doing;
  envelope where;
};

/// State of the front. `Worker` is the typed actor that does the blocking work.
template <class Worker>
struct slot_state {
  std::string slot;
  Worker worker;
  uint64_t done = 0, cached = 0, faults = 0;
  std::list<slot_job> line;            ///< in order; the worker has the first
  double since = seconds_since_1970(); ///< when the first began, or the last one ended

  void end(std::list<slot_job>::iterator job) {
    if (job == line.begin()) since = seconds_since_1970();
    line.erase(job);
  }

  /// Where there is a job, its only child names the first one and lists those that wait behind it,
  /// as a queue's detail does.
  Message<wire::Snapshot> snapshot(const char* role, const char* verb) const {
    std::string detail, first, behind;
    if (!line.empty()) {
      auto tenths = static_cast<int>(10 * std::max(0.0, seconds_since_1970() - since));
      detail = line.front().doing + " for " + std::to_string(tenths / 10) + "." +
               std::to_string(tenths % 10) + " s";
      uint64_t run = 0;
      append_waiting(first, run, line.front().where);
      for (auto job = std::next(line.begin()); job != line.end(); ++job)
        append_waiting(behind, run, job->where);
    }
    auto head =
        snapshot_of(role, slot, line.empty() ? "idle" : verb, detail,
                    {{"done", done}, {"cached", cached}, {"infrastructure_faults", faults}});
    return build<wire::Snapshot>([&](wire::Snapshot::Builder to) {
      auto from = head.open();
      to.setActor(from->getActor());
      to.setId(from->getId());
      to.setState(from->getState());
      to.setDetail(from->getDetail());
      to.setNumbers(from->getNumbers());
      to.setSince(since);
      if (line.empty()) return;
      auto jobs = to.initChildren(1)[0];
      jobs.setActor("slot_line");
      jobs.setId(first);
      jobs.setSince(since);
      jobs.setDetail(behind);
    });
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
  if (state.line.empty()) state.since = seconds_since_1970();
  auto job = state.line.insert(state.line.end(), {std::move(doing), where});
  auto answer = self->template make_response_promise<Message<Result>>();
  self->request(state.worker, limit, what, where, request, extra...)
      .then(
          [self, answer, job](const Message<Result>& result) mutable {
            auto& s = self->state;
            s.end(job);
            ++s.done;
            auto view = result.open();
            if (view->getFault().getClass() == wire::FaultClass::INFRASTRUCTURE) ++s.faults;
            if constexpr (std::is_same_v<Result, wire::BuildResult>)
              if (view->getCached()) ++s.cached;
            answer.deliver(result);
          },
          [self, answer, job](caf::error& why) mutable {
            self->state.end(job);
            ++self->state.faults;
            answer.deliver(std::move(why));
          });
  return answer;
}

} // namespace kernelmill
