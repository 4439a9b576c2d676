#pragma once

// Jobs of one kind on their way to workers that offered credits. A job is a pure function of its
// request, so a worker that dies or misses its lease costs time, never a result: the job is leased
// again, and an answer that comes after its lease has expired is ignored.

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <caf/all.hpp>

#include "messages/actors.hpp"

namespace kernelmill {

struct lease_policy {
  std::chrono::milliseconds lease = std::chrono::minutes{3};
  uint32_t attempts = 3;      ///< workers that a job may be leased to before its fault is believed
  bool workers_return = true; ///< false: when the last worker is gone, its jobs are lost
};

/// `Result` holds a `fault`; class infrastructure there, or no answer, leases the job again.
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
    auto answer = self->template make_response_promise<Message<Result>>();
    waiting_.push_back({where, request, answer, 0, 1, {}, {}});
    if (deserted_) lose_waiting();
    dispatch(self, policy);
    return answer;
  }

  template <class Self>
  void join(Self* self, const lease_policy& policy, const Worker& who, uint32_t credits) {
    workers_.push_back({who, credits, {}});
    deserted_ = false;
    self->monitor(who);
    dispatch(self, policy);
  }

  /// Forgets a worker that is gone and leases its jobs again at once.
  template <class Self>
  void leave(Self* self, const lease_policy& policy, const caf::actor_addr& who) {
    auto i = std::find_if(workers_.begin(), workers_.end(),
                          [&](const worker& x) { return x.handle.address() == who; });
    if (i == workers_.end()) return;
    auto orphans = std::move(i->leases);
    workers_.erase(i);
    for (auto& orphan : orphans) settle(orphan, "the worker is gone");
    deserted_ = workers_.empty() && !policy.workers_return;
    if (deserted_) lose_waiting();
    dispatch(self, policy);
  }

  /// Takes back every lease that is older than the policy allows.
  template <class Self>
  void expire(Self* self, const lease_policy& policy) {
    auto oldest = self->clock().now() - policy.lease;
    std::vector<lease_ptr> expired;
    for (auto& x : workers_)
      for (auto& lease : x.leases)
        if (lease->leased_at <= oldest) expired.push_back(lease);
    for (auto& lease : expired) {
      give_back(lease);
      settle(lease, "the lease has expired");
    }
    dispatch(self, policy);
  }

  size_t waiting() const { return waiting_.size(); }
  size_t workers() const { return workers_.size(); }
  uint64_t done() const { return done_; }
  uint64_t leased_again() const { return leased_again_; }

  size_t leased() const {
    size_t result = 0;
    for (auto& x : workers_) result += x.leases.size();
    return result;
  }

private:
  struct job {
    envelope where;
    Message<Request> request;
    promise answer;
    uint32_t attempts = 0;
    uint32_t attempts_allowed = 1;
    caf::actor_addr last; // where the latest attempt went
    caf::actor_clock::time_point leased_at;
  };

  using lease_ptr = std::shared_ptr<job>;

  struct worker {
    Worker handle;
    uint32_t credits;
    std::unordered_set<lease_ptr> leases;

    uint32_t free() const { return credits - static_cast<uint32_t>(leases.size()); }
  };

  // The worker with the most free credits; one that just failed this job only when it is alone.
  worker* choose(const job& next) {
    worker* best = nullptr;
    for (auto& x : workers_) {
      if (x.free() == 0) continue;
      if (workers_.size() > 1 && next.last && x.handle.address() == next.last) continue;
      if (best == nullptr || x.free() > best->free()) best = &x;
    }
    return best;
  }

  template <class Self>
  void dispatch(Self* self, const lease_policy& policy) {
    while (!waiting_.empty()) {
      auto* chosen = choose(waiting_.front());
      if (chosen == nullptr) return;
      auto next = std::make_shared<job>(std::move(waiting_.front()));
      waiting_.pop_front();
      lease(self, policy, *chosen, std::move(next));
    }
  }

  template <class Self>
  void lease(Self* self, const lease_policy& policy, worker& to, lease_ptr what) {
    ++what->attempts;
    what->attempts_allowed = policy.attempts;
    what->last = to.handle.address();
    what->leased_at = self->clock().now();
    to.leases.insert(what);
    // No timeout here: CAF's clock keeps each until it is due, answered or not. expire() looks.
    self->state.look_later(self);
    self->request(to.handle, caf::infinite, Atom{}, what->where, what->request)
        .then(
            [this, self, policy, what](const Message<Result>& result) {
              if (!give_back(what)) return; // the worker was given up before it answered
              auto fault = result.open();
              bool ours = fault->getFault().getClass() == wire::FaultClass::INFRASTRUCTURE;
              if (ours && what->attempts < what->attempts_allowed) {
                again(what);
              } else {
                ++done_;
                what->answer.deliver(result);
              }
              dispatch(self, policy);
            },
            [this, self, policy, what](caf::error& why) {
              if (!give_back(what)) return;
              settle(what, self->system().render(why));
              dispatch(self, policy);
            });
  }

  // Takes the lease from its worker; false when the worker no longer holds it.
  bool give_back(const lease_ptr& what) {
    for (auto& x : workers_)
      if (x.leases.erase(what) > 0) return true;
    return false;
  }

  // Ends a lease that got no answer.
  void settle(const lease_ptr& what, const std::string& why) {
    if (what->attempts < what->attempts_allowed)
      again(what);
    else
      what->answer.deliver(lost(*what, why));
  }

  void lose_waiting() {
    for (auto& x : waiting_) x.answer.deliver(lost(x, "no worker is left"));
    waiting_.clear();
  }

  void again(const lease_ptr& what) {
    ++leased_again_;
    waiting_.push_front(*what);
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
  std::deque<job> waiting_;
  std::vector<worker> workers_;
  uint64_t done_ = 0;
  uint64_t leased_again_ = 0;
};

} // namespace kernelmill
