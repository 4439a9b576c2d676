#pragma once

// Workers that offered credits to a queue of jobs: which leases each holds, and which of them a
// job goes to.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/abstract_actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_clock.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/typed_response_promise.hpp>

#include "messages/actors.hpp"
#include "messages/sandbox_layers.hpp"

namespace kernelmill {

template <class Worker, class Request, class Result>
class worker_pool {
public:
  struct job {
    envelope where;
    Message<Request> request;
    caf::strong_actor_ptr asker;
    caf::typed_response_promise<Message<Result>> answer;
    uint32_t attempts = 0;
    uint32_t attempts_allowed = 1;
    uint32_t losses = 0; // of workers, that cost no attempt
    uint32_t leases = 0; // that may still answer
    bool answered = false;
    caf::actor_clock::time_point since;  // it was asked for
    std::string last_error;              // of the lease before
    std::vector<caf::actor_addr> failed; // workers that gave it no result; the latest is last

    bool dropped = false; // its caller no longer waits

    // An episode that was cancelled, or that has waited too long.
    bool is_unwanted() const {
      if (dropped) return true;
      return asker && caf::actor_cast<caf::abstract_actor*>(asker)->getf(
                          caf::abstract_actor::is_cleaned_up_flag);
    }
  };
  using job_ptr = std::shared_ptr<job>;

  /// One worker's hold on a job.
  struct lease {
    job_ptr what;
    caf::actor_clock::time_point since;
    caf::actor_addr who;
    bool cancelled = false; // the worker has been told
  };
  using lease_ptr = std::shared_ptr<lease>;

  struct worker {
    Worker handle;
    uint32_t credits;
    uint32_t layers;
    std::vector<lease_ptr> leases;

    bool has_layers_for(const job& what) const { return (what.where.layers & ~layers) == 0; }

    size_t free() const { return credits > leases.size() ? credits - leases.size() : 0; }

    bool holds(const job_ptr& what) const {
      return std::any_of(leases.begin(), leases.end(),
                         [&](const lease_ptr& x) { return x->what == what; });
    }

    bool has_failed(const job& what) const {
      return std::any_of(what.failed.begin(), what.failed.end(),
                         [&](const caf::actor_addr& x) { return handle.address() == x; });
    }
  };

  /// `layers`: the layers of the sandbox on the worker's machine.
  void add(const Worker& who, uint32_t credits, uint32_t layers) {
    workers_.push_back({who, credits, layers, {}});
  }

  /// Gives a worker no more jobs.
  void retire(const caf::actor_addr& who) {
    for (auto& x : workers_)
      if (x.handle.address() == who) x.credits = 0;
  }

  /// Forgets a worker. Returns the leases that it held; nothing when the worker is unknown.
  std::optional<std::vector<lease_ptr>> remove(const caf::actor_addr& who) {
    auto i = std::find_if(workers_.begin(), workers_.end(),
                          [&](const worker& x) { return x.handle.address() == who; });
    if (i == workers_.end()) return std::nullopt;
    auto orphans = std::move(i->leases);
    workers_.erase(i);
    return orphans;
  }

  size_t size() const { return workers_.size(); }

  size_t credits() const {
    size_t result = 0;
    for (auto& x : workers_) result += x.credits;
    return result;
  }

  size_t leased() const {
    size_t result = 0;
    for (auto& x : workers_) result += x.leases.size();
    return result;
  }

  /// Calls `f(worker, lease)`, which changes neither workers nor leases.
  template <class F>
  void for_each_lease(F f) const {
    for (auto& x : workers_)
      for (auto& one : x.leases) f(x, one);
  }

  /// Returns the worker with the most free credits among those for which `may` is true.
  template <class F>
  worker* most_free(F may) {
    worker* best = nullptr;
    for (auto& x : workers_)
      if (x.free() > 0 && may(x) && (best == nullptr || x.free() > best->free())) best = &x;
    return best;
  }

  /// Prefers workers that have not failed this job, however busy: sick workers fail jobs at once,
  /// so they always have the most free credits. When all have failed it, the job goes where it
  /// failed longest ago. The pool does not wait for a worker without credits, for it takes no job
  /// again, nor for one that lacks a layer of the sandbox that the job's run requires.
  worker* choose(job& next) {
    auto untried = [&](const worker& x) {
      return x.credits > 0 && x.has_layers_for(next) && !x.has_failed(next);
    };
    while (!next.failed.empty() && std::none_of(workers_.begin(), workers_.end(), untried))
      next.failed.erase(next.failed.begin());
    return most_free(untried);
  }

  /// Takes the lease from its worker; false when the worker no longer holds it.
  bool give_back(const lease_ptr& what) {
    for (auto& x : workers_) {
      auto i = std::find(x.leases.begin(), x.leases.end(), what);
      if (i == x.leases.end()) continue;
      x.leases.erase(i);
      return true;
    }
    return false;
  }

private:
  std::vector<worker> workers_;
};

} // namespace kernelmill
