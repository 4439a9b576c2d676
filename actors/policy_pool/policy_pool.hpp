#pragma once

// The POLICY POOL: one policy client that stands before many servers, which come and go while runs
// are in progress. A conversation stays with one server as long as that serves (rendezvous hashing
// of its session), so that the server finds the prefix in its cache. A request whose server fails
// goes to the next one in its session's order with what is left of its deadline; one that finds no
// server waits for one, in the order of arrival, until its deadline.
//
// Each server has a client actor of its own, with its window, its back-off and its circuit. Such a
// client tries until the deadline; so the pool looks at its STATUS, and when the circuit there is
// open, moves its requests to a server that answers. Each attempt is asked for by an actor of its
// own: when that one ends, the client gives the request up and closes its connection.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/typed_event_based_actor.hpp>

#include "actors/policy_client/admitted_job.hpp"
#include "actors/policy_client/circuit_breaker.hpp"
#include "actors/policy_client/policy_config.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// Spawns the client of one server; tests put scripted ones here.
using policy_member_factory = std::function<policy_client_actor(policy_config)>;

/// Which weights were declared when an attempt was sent, and when its answer came.
struct declared_versions {
  std::string before;
  std::string after;
  bool changed = false; ///< at least once in between
};

/// Returns the one span of a completion of so many tokens that declarations allow; nothing when
/// there were none. Where the version changed in flight the token is unknown: the span's version is
/// then "BEFORE..AFTER", which equals neither.
std::optional<weight_span> span_of(const declared_versions& x, uint32_t tokens);

class policy_pool_state {
public:
  static inline const char* name = "policy-pool";

  using result_message = Message<wire::CompletionResult>;
  using promise = admitted_job::promise;
  using time_point = admitted_job::time_point;

  explicit policy_pool_state(policy_pool_actor::pointer self);
  ~policy_pool_state();

  void start(policy_member_factory factory) { factory_ = std::move(factory); }

  promise accept(const envelope& env, const Message<wire::CompletionRequest>& request);
  expected<void> attach(wire::PolicyServer::Reader x);
  expected<void> detach(const std::string& name, std::chrono::milliseconds patience);
  expected<void> declare(const std::string& name, const std::string& version);
  void look();
  void on_down(const caf::actor_addr& who);
  Message<wire::Snapshot> snapshot() const;

  /// Answers all requests with `why` and ends the clients.
  void abort(const error& why);

private:
  enum class server_state : unsigned char { serving, draining, lost };

  struct server {
    uint64_t number = 0; ///< new for each attachment
    std::string name;
    policy_config config;
    bool takes_ids = false; ///< it can be asked in token ids
    server_state state = server_state::serving;
    policy_client_actor client; ///< null when lost
    circuit_breaker health;
    time_point drain_until{};
    bool asked = false;                  ///< STATUS is on its way
    Message<wire::Snapshot> client_says; ///< its latest; empty before
    uint32_t in_flight = 0;
    uint64_t done = 0;
    uint64_t failed = 0;
    uint64_t failed_over = 0;
    std::string weights;
    uint64_t weight_changes = 0;
    std::string last_error;
  };
  using server_ptr = std::shared_ptr<server>;

  struct job : admitted_job {
    uint64_t session = 0; ///< hashed
    bool exact = false;   ///< only for servers that take token ids
    time_point timer;
    uint32_t moves = 0;
    std::set<uint64_t> tried; ///< numbers of servers
    error last;               ///< why it went on to another

    // Of the attempt in flight; `attempt` is 0 while the job waits.
    uint64_t attempt = 0;
    time_point sent;
    server_ptr at;
    bool trial = false;
    policy_client_actor relay;
    std::string weights;
    uint64_t weight_changes = 0;
  };

  time_point now() const;
  server_ptr find(const std::string& name_or_url) const;
  bool any_serving() const;
  bool any_serving(const job& x) const;
  static tl::unexpected<error> already_attached(const server& x);
  uint64_t rank(const job& x, const server& at) const;
  static bool fits(const job& x, const server& at) { return !x.exact || at.takes_ids; }
  server_ptr choose(const job& x, bool healthy_only = false) const;

  void place(job& x);
  void place_waiting();
  void send(job& x, const server_ptr& to);
  Message<wire::CompletionRequest> request_with_deadline(const job& x) const;
  void leave(job& x);
  void move(job& x);
  void on_result(uint64_t id, uint64_t attempt, const result_message& result);
  void on_answer(job& x, const result_message& result);
  void on_fault(job& x, const error& why, const result_message& result);
  void finish(job& x, result_message result);
  void fail(job& x, error why);
  void expire();
  error expired(const job& x) const;
  error all_failed(const job& x) const; ///< REQUIRES: `last` says why
  error came_late(const job& x) const;

  void examine(const server_ptr& x);
  void sicken(const server_ptr& x, const std::string& why);
  std::vector<uint64_t> jobs_at(const server& x) const;
  void evict(const server_ptr& x);
  void end_if_drained(const server_ptr& x);
  void drop_asker(const caf::actor_addr& asker);
  void look_later();

  policy_pool_actor::pointer self_;
  policy_member_factory factory_;
  std::map<std::string, server_ptr> servers_;
  std::map<uint64_t, job> jobs_;
  std::set<uint64_t> waiting_;
  std::set<std::pair<time_point, uint64_t>> timers_;
  asker_list askers_;
  std::string weights_of_all_; ///< also of those that are attached later
  uint64_t next_job_ = 1;
  uint64_t next_attempt_ = 1;
  uint64_t next_server_ = 1;
  uint64_t completed_ = 0;
  uint64_t failed_ = 0;
  uint64_t failed_over_ = 0;
  bool looking_ = false; ///< a tick is due
};

policy_pool_actor::behavior_type
policy_pool(policy_pool_actor::stateful_pointer<policy_pool_state> self,
            policy_member_factory factory);

/// A pool whose members speak HTTP.
policy_pool_actor spawn_policy_pool(caf::actor_system& system, logger log);

} // namespace kernelmill
