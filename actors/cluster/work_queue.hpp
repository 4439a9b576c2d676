#pragma once

// Jobs of one kind on their way to workers that offered credits. A job is a pure function of its
// request, so a worker that dies or misses its lease costs time, never a result: the job is leased
// again, and an answer that comes after its lease has expired is ignored. When no job waits, one
// that takes far longer than others is leased a second time, and the first answer counts.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <caf/abstract_actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_clock.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/result.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/cluster/job_line.hpp"
#include "messages/actors.hpp"
#include "messages/judged.hpp"
#include "messages/log/logger.hpp"
#include "messages/sandbox_layers.hpp"

namespace kernelmill {

struct lease_policy {
  std::chrono::milliseconds lease = std::chrono::minutes{3};
  uint32_t attempts = 3;      ///< workers that a job may be leased to before its fault is believed
  bool workers_return = true; ///< false: when the last worker is gone, its jobs are lost
  uint32_t losses = 0;        ///< of workers that cost a job none of its attempts

  /// Times the median duration after which a job is leased twice; 0: never. Not before the floor.
  double hedge_factor = 0;
  std::chrono::milliseconds hedge_floor = std::chrono::seconds{2};

  logger log = {}; ///< hears of jobs that are leased again
};

/// `Result` holds a `fault`. An answer that is to be repeated, or none, leases the job again; when
/// no attempt is left, the latest answer counts.
/// The state of `Self` has look_later(self), which sees to it that expire() is called in time.
template <class Worker, class Atom, class Request, class Result>
class work_queue {
public:
  using promise = caf::typed_response_promise<Message<Result>>;

  explicit work_queue(const char* kind) : kind_(kind) {
    // nop
  }

  template <class Self>
  caf::result<Message<Result>> submit(Self* self, const lease_policy& policy, const envelope& where,
                                      const Message<Request>& request) {
    auto next = std::make_shared<job>();
    next->where = where;
    next->request = request;
    next->asker = self->current_sender();
    next->since = self->clock().now();
    next->answer = self->template make_response_promise<Message<Result>>();
    waiting_.push_back(where, next);
    if (deserted_) lose_waiting();
    dispatch(self, policy);
    return next->answer;
  }

  /// Where `layers` are those of the sandbox that stand where the worker works.
  template <class Self>
  void join(Self* self, const lease_policy& policy, const Worker& who, uint32_t credits,
            uint32_t layers = all_layers) {
    workers_.push_back({who, credits, layers, {}});
    deserted_ = false;
    self->monitor(who);
    dispatch(self, policy);
  }

  /// Gives a worker no more jobs.
  template <class Self>
  void retire(Self* self, const lease_policy& policy, const caf::actor_addr& who) {
    for (auto& x : workers_)
      if (x.handle.address() == who) x.credits = 0;
    dispatch(self, policy); // a job may have waited for this one alone
  }

  /// Forgets a worker that is gone and leases its jobs again at once.
  template <class Self>
  void leave(Self* self, const lease_policy& policy, const caf::actor_addr& who) {
    auto i = std::find_if(workers_.begin(), workers_.end(),
                          [&](const worker& x) { return x.handle.address() == who; });
    if (i == workers_.end()) return;
    auto orphans = std::move(i->leases);
    workers_.erase(i);
    for (auto& orphan : orphans) {
      forgive(*orphan->what, policy);
      settle(policy, *orphan, "the worker is gone");
    }
    deserted_ = workers_.empty() && !policy.workers_return;
    if (deserted_) lose_waiting();
    dispatch(self, policy);
  }

  /// The asker waits for its jobs of this envelope no more.
  template <class Self>
  void cancel(Self* self, const lease_policy& policy, const envelope& where,
              const caf::strong_actor_ptr& asker) {
    auto drop = [&](const job_ptr& x) {
      if (x->asker == asker && is_same_job(x->where, where)) x->dropped = true;
    };
    waiting_.for_each(drop);
    for (auto& x : workers_)
      for (auto& one : x.leases) drop(one->what);
    end_unwanted(self);
    dispatch(self, policy);
  }

  /// Takes back every lease that is older than the policy allows, and leases stragglers twice.
  template <class Self>
  void expire(Self* self, const lease_policy& policy) {
    auto oldest = self->clock().now() - policy.lease;
    std::vector<lease_ptr> expired;
    for (auto& x : workers_)
      for (auto& one : x.leases)
        if (one->since <= oldest) expired.push_back(one);
    for (auto& one : expired) {
      give_back(one);
      settle(policy, *one, "the lease has expired");
    }
    end_unwanted(self);
    dispatch(self, policy);
    if (policy.hedge_factor > 0 && waiting_.empty()) hedge(self, policy);
  }

  size_t waiting() const { return waiting_.size(); }
  size_t workers() const { return workers_.size(); }
  uint64_t done() const { return done_; }
  uint64_t leased_again() const { return leased_again_; }
  uint64_t leased_twice() const { return leased_twice_; }

  size_t credits() const {
    size_t result = 0;
    for (auto& x : workers_) result += x.credits;
    return result;
  }

  /// How long a job took lately; 0: none has been done yet.
  double median_seconds() const {
    if (durations_.empty()) return 0;
    auto sorted = durations_;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return sorted[sorted.size() / 2];
  }

  /// What an observer may know of a job; `worker` is nobody while it waits.
  struct job_view {
    const envelope& where;
    uint32_t attempt; ///< 1 is the first
    uint32_t attempts_allowed;
    caf::actor_addr worker;
    double seconds; ///< that it has been leased, or has waited
    const std::string& last_error;
  };

  template <class F>
  void for_each_lease(caf::actor_clock::time_point now, F f) const {
    for (auto& x : workers_)
      for (auto& one : x.leases)
        f(job_view{one->what->where, one->what->attempts, one->what->attempts_allowed, one->who,
                   std::chrono::duration<double>(now - one->since).count(), one->what->last_error});
  }

  /// In the order in which they will be leased.
  template <class F>
  void for_each_waiting(caf::actor_clock::time_point now, F f) {
    waiting_.for_each_in_turn([&](uint64_t, const job_ptr& x) {
      if (!x->is_unwanted())
        f(job_view{x->where,
                   x->attempts + 1,
                   std::max(x->attempts_allowed, x->attempts + 1),
                   {},
                   std::chrono::duration<double>(now - x->since).count(),
                   x->last_error});
    });
  }

  size_t leased() const {
    size_t result = 0;
    for (auto& x : workers_) result += x.leases.size();
    return result;
  }

private:
  struct job {
    envelope where;
    Message<Request> request;
    caf::strong_actor_ptr asker;
    promise answer;
    uint32_t attempts = 0;
    uint32_t attempts_allowed = 1;
    uint32_t losses = 0; // of workers, that cost no attempt
    uint32_t leases = 0; // that may still answer
    bool answered = false;
    caf::actor_clock::time_point since;  // it was asked for
    std::string last_error;              // of the lease before
    std::vector<caf::actor_addr> failed; // workers that gave it no result; the latest is last

    bool dropped = false; // its asker has said that it waits no more

    // An episode that was cancelled, or that has waited too long.
    bool is_unwanted() const {
      if (dropped) return true;
      return asker && caf::actor_cast<caf::abstract_actor*>(asker)->getf(
                          caf::abstract_actor::is_cleaned_up_flag);
    }
  };
  using job_ptr = std::shared_ptr<job>;

  // One worker's hold on a job.
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

  // Of the workers that `may` have a job, the one with the most free credits.
  template <class F>
  worker* most_free(F may) {
    worker* best = nullptr;
    for (auto& x : workers_)
      if (x.free() > 0 && may(x) && (best == nullptr || x.free() > best->free())) best = &x;
    return best;
  }

  // Never one that has failed this job while there is another, however busy: sick workers fail
  // jobs at once, so they are always the freest. When all have failed it, it goes where it failed
  // longest ago. A worker without credits is not waited for: it will take no job again. Nor one
  // where a layer of the sandbox is missing that the job's run requires.
  worker* choose(job& next) {
    auto untried = [&](const worker& x) {
      return x.credits > 0 && x.has_layers_for(next) && !x.has_failed(next);
    };
    while (!next.failed.empty() && std::none_of(workers_.begin(), workers_.end(), untried))
      next.failed.erase(next.failed.begin());
    return most_free(untried);
  }

  template <class Self>
  void dispatch(Self* self, const lease_policy& policy) {
    while (!waiting_.empty()) {
      worker* chosen = nullptr;
      auto next = waiting_.pop_if([&](const job_ptr& x) {
        if (x->is_unwanted()) return true;
        chosen = choose(*x);
        return chosen != nullptr;
      });
      if (!next) return;
      auto& what = **next;
      if (chosen == nullptr) {
        give_up(what);
        continue;
      }
      ++what.attempts;
      what.attempts_allowed = policy.attempts + what.losses;
      lease_to(self, policy, *chosen, std::move(*next));
    }
  }

  // A build ends soon by itself; what a candidate does need not.
  static constexpr bool ends_jobs = !std::is_same_v<Worker, compiler_actor>;

  template <class Self>
  void end_unwanted(Self* self) {
    if constexpr (ends_jobs) {
      for (auto& x : workers_)
        for (auto& one : x.leases) {
          if (one->cancelled || !one->what->is_unwanted()) continue;
          one->cancelled = true;
          self->send(x.handle, atom::cancel_v, one->what->where);
        }
    }
  }

  static bool is_same_job(const envelope& a, const envelope& b) {
    return a.epoch == b.epoch && a.run == b.run && a.episode == b.episode && a.trace == b.trace;
  }

  // Whoever drops a job may count its answers.
  void give_up(job& what) {
    if (what.answered) return;
    what.answered = true;
    what.answer.deliver(lost(what, "nobody waits for it"));
  }

  // The straggler's second lease costs no attempt: it is nobody's fault yet.
  template <class Self>
  void hedge(Self* self, const lease_policy& policy) {
    constexpr size_t enough_to_know = 8;
    if (durations_.size() < enough_to_know) return;
    auto sorted = durations_;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    std::chrono::duration<double> limit{sorted[sorted.size() / 2] * policy.hedge_factor};
    auto now = self->clock().now();
    std::vector<job_ptr> slow;
    for (auto& x : workers_)
      for (auto& one : x.leases)
        if (!one->what->answered && !one->what->is_unwanted() && one->what->leases == 1 &&
            now - one->since > limit && now - one->since > policy.hedge_floor)
          slow.push_back(one->what);
    for (auto& what : slow) {
      auto* chosen = most_free([&](const worker& x) {
        return x.has_layers_for(*what) && !x.holds(what) && !x.has_failed(*what);
      });
      if (chosen == nullptr) continue;
      ++leased_twice_;
      lease_to(self, policy, *chosen, what);
    }
  }

  template <class Self>
  void lease_to(Self* self, const lease_policy& policy, worker& to, job_ptr what) {
    ++what->leases;
    to.leases.push_back(
        std::make_shared<lease>(lease{what, self->clock().now(), to.handle.address()}));
    // A worker that is lost never answers, so its handlers stay here for ever; the job must not.
    std::weak_ptr<lease> given = to.leases.back();
    // No timeout here: CAF's clock keeps each until it is due, answered or not. expire() looks.
    self->state.look_later(self);
    self->request(to.handle, caf::infinite, Atom{}, what->where, what->request)
        .then(
            [this, self, policy, given](const Message<Result>& result) {
              auto held = given.lock();
              if (!held || !give_back(held)) return; // the worker was given up before it answered
              take(policy, *held, result, self->clock().now());
              dispatch(self, policy);
            },
            [this, self, policy, given](caf::error& why) {
              auto held = given.lock();
              if (!held || !give_back(held)) return;
              forgive(*held->what, policy);
              settle(policy, *held, self->system().render(why));
              dispatch(self, policy);
            });
  }

  void take(const lease_policy& policy, lease& from, const Message<Result>& result,
            caf::actor_clock::time_point now) {
    auto& what = from.what;
    --what->leases;
    if (what->answered) return; // by the other of two leases
    if (what->is_unwanted()) {
      what->answered = true;
      what->answer.deliver(result);
      return;
    }
    auto view = result.open();
    bool ours = is_to_be_repeated(*view);
    if (ours) what->failed.push_back(from.who);
    if (ours && what->leases > 0) return;
    if (ours && what->attempts < what->attempts_allowed)
      return again(policy, what, view->getFault().getMessage().cStr());
    ++done_;
    if (!ours) remember(std::chrono::duration<double>(now - from.since).count());
    what->answered = true;
    what->answer.deliver(result);
  }

  void remember(double seconds) {
    constexpr size_t kept = 64;
    if (durations_.size() < kept)
      durations_.push_back(seconds);
    else
      durations_[done_ % kept] = seconds;
  }

  // Takes the lease from its worker; false when the worker no longer holds it.
  bool give_back(const lease_ptr& what) {
    for (auto& x : workers_) {
      auto i = std::find(x.leases.begin(), x.leases.end(), what);
      if (i == x.leases.end()) continue;
      x.leases.erase(i);
      return true;
    }
    return false;
  }

  // A node that is lost says nothing of the job, unless one node after another is lost with it.
  static void forgive(job& what, const lease_policy& policy) {
    if (what.losses >= policy.losses) return;
    ++what.losses;
    ++what.attempts_allowed;
  }

  // Ends a lease that got no answer.
  void settle(const lease_policy& policy, const lease& from, const std::string& why) {
    auto& what = from.what;
    --what->leases;
    what->failed.push_back(from.who);
    if (what->answered || what->leases > 0) return;
    if (what->is_unwanted()) return give_up(*what);
    if (what->attempts < what->attempts_allowed) return again(policy, what, why);
    what->answered = true;
    what->answer.deliver(lost(*what, why));
  }

  void lose_waiting() {
    waiting_.for_each([this](job_ptr& x) {
      x->answered = true;
      x->answer.deliver(lost(*x, "no worker is left"));
    });
    waiting_.clear();
  }

  void again(const lease_policy& policy, const job_ptr& what, const std::string& why) {
    ++leased_again_;
    what->last_error = why.empty() ? "its machine could not time it" : why;
    if (policy.log.takes(log_level::warn))
      policy.log.warn({"cluster", {}, {}, {}},
                      std::string{"a job to "} + kind_ + " is leased again, attempt " +
                          std::to_string(what->attempts + 1) + ": " + what->last_error);
    waiting_.push_front(what->where, what);
  }

  Message<Result> lost(const job& what, const std::string& why) const {
    return build<Result>([&](typename Result::Builder x) {
      auto fault = x.initFault();
      fault.setClass(wire::FaultClass::INFRASTRUCTURE);
      fault.setCategory("worker_lost");
      fault.setMessage(std::string{"failed to "} + kind_ + " after " +
                       std::to_string(what.attempts) + " leases: " + why);
    });
  }

  const char* kind_;
  bool deserted_ = false; // the last worker has gone, and none will come
  job_line<job_ptr> waiting_;
  std::vector<worker> workers_;
  std::vector<double> durations_; // seconds, of the latest jobs
  uint64_t done_ = 0;
  uint64_t leased_again_ = 0;
  uint64_t leased_twice_ = 0;
};

} // namespace kernelmill
