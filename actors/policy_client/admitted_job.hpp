#pragma once

// A request for a completion and its asker. The client of one server and the pool of many servers
// both keep it.

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/policy_client/completion_result.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct admitted_job {
  using promise = caf::typed_response_promise<Message<wire::CompletionResult>>;
  using time_point = std::chrono::steady_clock::time_point;

  uint64_t id = 0; ///< grows with the time of arrival
  envelope env;
  Message<wire::CompletionRequest> request;
  promise answer;
  caf::actor_addr asker;
  time_point started;
  time_point deadline;

  /// Takes the message that `self` handles, a request for a completion that may last for
  /// `longest` when it names no deadline. Returns what it asks for, or why it cannot be read.
  template <class Self>
  expected<request_facts> admit(Self* self, uint64_t number, const envelope& where,
                                const Message<wire::CompletionRequest>& what,
                                std::chrono::milliseconds longest) {
    id = number;
    env = where;
    request = what;
    // The promise takes the sender away from the message.
    asker = caf::actor_cast<caf::actor_addr>(self->current_sender());
    answer = self->template make_response_promise<Message<wire::CompletionResult>>();
    started = self->clock().now();
    auto facts = open_request(request);
    KM_TRY(facts);
    auto given = std::chrono::milliseconds{facts->deadline_ms};
    deadline = started + (given.count() > 0 ? given : longest);
    return facts;
  }

  /// Whether a server that has the request since `sent` had it for most of its time. An answer that
  /// is late is the policy's doing only then.
  bool mostly_since(time_point sent) const { return (deadline - sent) * 2 >= deadline - started; }
};

/// The actors that wait for answers. The owner monitors each of them once.
class asker_list {
public:
  template <class Self>
  void watch(Self* self, const caf::actor_addr& asker) {
    if (asker && open_[asker]++ == 0) self->monitor(asker);
  }

  template <class Self>
  void unwatch(Self* self, const caf::actor_addr& asker) {
    auto i = open_.find(asker);
    if (i == open_.end() || --i->second > 0) return;
    open_.erase(i);
    self->demonitor(asker);
  }

  /// Forgets one that has ended; returns the ids of its jobs.
  template <class Jobs>
  std::vector<uint64_t> drop(const caf::actor_addr& asker, const Jobs& jobs) {
    open_.erase(asker);
    std::vector<uint64_t> orphans;
    for (const auto& [id, x] : jobs)
      if (x.asker == asker) orphans.push_back(id);
    return orphans;
  }

private:
  std::map<caf::actor_addr, uint32_t> open_; ///< with how many requests each
};

} // namespace kernelmill
