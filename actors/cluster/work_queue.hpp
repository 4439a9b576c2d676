#pragma once

// Jobs of one kind on their way to workers that offered credits. A job is a pure function of its
// request, so a worker that dies or misses its lease costs time, never a result: the job is leased
// again, and an answer that comes after its lease has expired is ignored. When no job waits, one
// that takes far longer than others is leased a second time, and the first answer counts.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/actor_clock.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/result.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/cluster/job_line.hpp"
#include "actors/cluster/worker_pool.hpp"
#include "actors/made_messages.hpp"
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

  /// Before the last attempt at a job whose attempts so far failed by the machine. Without it the
  /// attempts follow one another in milliseconds, and all meet what is over in a second: a burst of
  /// processes, a disk that is full until a file is removed.
  std::chrono::milliseconds rest{0};

  logger log = {}; ///< hears of jobs that are leased again
};

/// `Result` holds a `fault`. An answer that is to be repeated, or none, leases the job again; when
/// no attempt is left, the latest answer counts.
/// The state of `Self` has look_later(self), which sees to it that expire() is called in time.
template <class Worker, class Atom, class Request, class Result>
class work_queue {
public:
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

  /// `layers`: the layers of the sandbox on the worker's machine.
  template <class Self>
  void join(Self* self, const lease_policy& policy, const Worker& who, uint32_t credits,
            uint32_t layers = all_layers) {
    workers_.add(who, credits, layers);
    deserted_ = false;
    self->monitor(who);
    dispatch(self, policy);
  }

  /// Gives a worker no more jobs.
  template <class Self>
  void retire(Self* self, const lease_policy& policy, const caf::actor_addr& who) {
    workers_.retire(who);
    dispatch(self, policy); // a job may have waited for this one alone
  }

  /// Forgets a worker that is gone and leases its jobs again at once.
  template <class Self>
  void leave(Self* self, const lease_policy& policy, const caf::actor_addr& who) {
    auto orphans = workers_.remove(who);
    if (!orphans) return;
    for (auto& orphan : *orphans) {
      forgive(*orphan->what, policy);
      settle(policy, *orphan, "the worker is gone");
    }
    deserted_ = workers_.size() == 0 && !policy.workers_return;
    if (deserted_) lose_waiting();
    dispatch(self, policy);
  }

  /// The caller no longer waits for its jobs of this envelope.
  template <class Self>
  void cancel(Self* self, const lease_policy& policy, const envelope& where,
              const caf::strong_actor_ptr& asker) {
    auto drop = [&](const job_ptr& x) {
      if (x->asker == asker && is_same_job(x->where, where)) x->dropped = true;
    };
    waiting_.for_each(drop);
    for (auto& x : resting_) drop(x.what);
    workers_.for_each_lease([&](const worker&, const lease_ptr& one) { drop(one->what); });
    end_unwanted(self);
    dispatch(self, policy);
  }

  /// Takes back every lease that is older than the policy allows, and leases stragglers twice.
  template <class Self>
  void expire(Self* self, const lease_policy& policy) {
    auto oldest = self->clock().now() - policy.lease;
    std::vector<lease_ptr> expired;
    workers_.for_each_lease([&](const worker&, const lease_ptr& one) {
      if (one->since <= oldest) expired.push_back(one);
    });
    for (auto& one : expired) {
      workers_.give_back(one);
      settle(policy, *one, "the lease has expired");
    }
    end_unwanted(self);
    dispatch(self, policy);
    if (policy.hedge_factor > 0 && waiting_.empty()) hedge(self, policy);
  }

  size_t waiting() const { return waiting_.size() + resting_.size(); }
  size_t leased() const { return workers_.leased(); }
  size_t workers() const { return workers_.size(); }
  size_t credits() const { return workers_.credits(); }
  uint64_t done() const { return done_; }
  uint64_t leased_again() const { return leased_again_; }
  uint64_t leased_twice() const { return leased_twice_; }

  /// How long jobs took lately, in the mean: what a line of them takes; 0: none has been done yet.
  double mean_seconds() const {
    double sum = 0;
    for (auto x : durations_) sum += x;
    return durations_.empty() ? 0 : sum / static_cast<double>(durations_.size());
  }

  /// The same in the median: what a usual one takes.
  double median_seconds() const {
    if (durations_.empty()) return 0;
    auto sorted = durations_;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return sorted[sorted.size() / 2];
  }

  /// What an observer may know of a job; `worker` is null while it waits.
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
    workers_.for_each_lease([&](const worker&, const lease_ptr& one) {
      f(job_view{one->what->where, one->what->attempts, one->what->attempts_allowed, one->who,
                 std::chrono::duration<double>(now - one->since).count(), one->what->last_error});
    });
  }

  /// In the order in which they will be leased.
  template <class F>
  void for_each_waiting(caf::actor_clock::time_point now, F f) {
    auto show = [&](const job_ptr& x) {
      if (!x->is_unwanted())
        f(job_view{x->where,
                   x->attempts + 1,
                   std::max(x->attempts_allowed, x->attempts + 1),
                   {},
                   std::chrono::duration<double>(now - x->since).count(),
                   x->last_error});
    };
    waiting_.for_each_in_turn([&](uint64_t, const job_ptr& x) { show(x); });
    for (auto& x : resting_) show(x.what);
  }

private:
  using pool = worker_pool<Worker, Request, Result>;
  using job = typename pool::job;
  using job_ptr = typename pool::job_ptr;
  using lease = typename pool::lease;
  using lease_ptr = typename pool::lease_ptr;
  using worker = typename pool::worker;

  template <class Self>
  void dispatch(Self* self, const lease_policy& policy) {
    wake(self->clock().now());
    if (!resting_.empty()) self->state.look_later(self);
    while (!waiting_.empty()) {
      worker* chosen = nullptr;
      auto next = waiting_.pop_if([&](const job_ptr& x) {
        if (x->is_unwanted()) return true;
        chosen = workers_.choose(*x);
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

  struct resting_job {
    job_ptr what;
    caf::actor_clock::time_point until;
  };

  void wake(caf::actor_clock::time_point now) {
    std::erase_if(resting_, [&](const resting_job& x) {
      bool is_over = x.until <= now || x.what->is_unwanted();
      if (is_over) waiting_.push_front(x.what->where, x.what);
      return is_over;
    });
  }

  // A build ends soon by itself; what a candidate does need not.
  static constexpr bool ends_jobs = !std::is_same_v<Worker, compiler_actor>;

  template <class Self>
  void end_unwanted(Self* self) {
    if constexpr (ends_jobs) {
      workers_.for_each_lease([&](const worker& x, const lease_ptr& one) {
        if (one->cancelled || !one->what->is_unwanted()) return;
        one->cancelled = true;
        self->send(x.handle, atom::cancel_v, one->what->where);
      });
    }
  }

  static bool is_same_job(const envelope& a, const envelope& b) {
    return a.epoch == b.epoch && a.run == b.run && a.episode == b.episode && a.trace == b.trace;
  }

  // A caller that drops a job may count its answers.
  void give_up(job& what) {
    if (what.answered) return;
    what.answered = true;
    what.answer.deliver(lost(what, "its caller no longer waits"));
  }

  // The straggler's second lease costs no attempt: no worker has failed yet.
  template <class Self>
  void hedge(Self* self, const lease_policy& policy) {
    constexpr size_t enough_to_know = 8;
    if (durations_.size() < enough_to_know) return;
    std::chrono::duration<double> limit{median_seconds() * policy.hedge_factor};
    auto now = self->clock().now();
    std::vector<job_ptr> slow;
    workers_.for_each_lease([&](const worker&, const lease_ptr& one) {
      if (!one->what->answered && !one->what->is_unwanted() && one->what->leases == 1 &&
          now - one->since > limit && now - one->since > policy.hedge_floor)
        slow.push_back(one->what);
    });
    for (auto& what : slow) {
      auto* chosen = workers_.most_free([&](const worker& x) {
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
    // No timeout here: CAF's clock keeps each until it is due, answered or not. expire() checks
    // leases.
    self->state.look_later(self);
    self->request(to.handle, caf::infinite, Atom{}, what->where, what->request)
        .then(
            [this, self, policy, given](const Message<Result>& result) {
              auto held = given.lock();
              // The worker was given up before it answered.
              if (!held || !workers_.give_back(held)) return;
              take(policy, *held, result, self->clock().now());
              dispatch(self, policy);
            },
            [this, self, policy, given](caf::error& why) {
              auto held = given.lock();
              if (!held || !workers_.give_back(held)) return;
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
    if (ours) {
      what->failed.push_back(from.who);
      note_loss(*what, view->getFault().getCategory().cStr());
    }
    if (ours && what->leases > 0) return;
    if (ours && what->attempts < what->attempts_allowed) {
      again(policy, what, view->getFault().getMessage().cStr());
      auto failed = view->getFault().getClass() == wire::FaultClass::INFRASTRUCTURE;
      bool is_last = what->attempts + 1 == what->attempts_allowed;
      if (failed && is_last && policy.rest.count() > 0)
        resting_.push_back({what, now + policy.rest});
      else
        waiting_.push_front(what->where, what);
      return;
    }
    ++done_;
    if (!ours) remember(std::chrono::duration<double>(now - from.since).count());
    what->answered = true;
    what->answer.deliver(result);
  }

  // Tells the next referee of the loss: else each machine would take its own for the first.
  static void note_loss(job& what, std::string_view category) {
    if constexpr (std::is_same_v<Request, wire::EvaluateRequest>)
      if (is_loss_of_referee(category))
        what.request = changed(what.request, [](auto x) { x.setLostBefore(true); });
  }

  void remember(double seconds) {
    constexpr size_t kept = 64;
    if (durations_.size() < kept)
      durations_.push_back(seconds);
    else
      durations_[done_ % kept] = seconds;
  }

  // A lost node does not speak against the job, unless one node after another is lost with it.
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
    if (what->attempts < what->attempts_allowed) {
      again(policy, what, why);
      return waiting_.push_front(what->where, what);
    }
    what->answered = true;
    what->answer.deliver(lost(*what, why));
  }

  void lose_waiting() {
    for (auto& x : resting_) waiting_.push_back(x.what->where, x.what);
    resting_.clear();
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
  std::vector<resting_job> resting_;
  pool workers_;
  std::vector<double> durations_; // seconds, of the latest jobs
  uint64_t done_ = 0;
  uint64_t leased_again_ = 0;
  uint64_t leased_twice_ = 0;
};

} // namespace kernelmill
