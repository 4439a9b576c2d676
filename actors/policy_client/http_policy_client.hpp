#pragma once

// The POLICY CLIENT over HTTP: one attached server, an adaptive window of requests in flight, a
// fair queue behind it, attempts until the deadline, and a circuit breaker. An actor beside the
// thread of an http_client: the thread answers by message, and every promise is fulfilled here.
// All time is the actor system's clock, so the same code runs on virtual time with a scripted
// transport.
//
// A request whose time is over while the server works on it is stopped, and the server is asked
// whether it is well: if so, the answer itself took too long.
//
// When the asker of a request ends, the request is given up and its connection closed: the server
// stops generating. When the actor itself ends, every asker gets a result with category
// "cancelled".

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <caf/typed_event_based_actor.hpp>

#include "actors/policy_client/adaptive_window.hpp"
#include "actors/policy_client/admitted_job.hpp"
#include "actors/policy_client/circuit_breaker.hpp"
#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/fair_queue.hpp"
#include "actors/policy_client/policy_config.hpp"
#include "actors/policy_client/protocol/chat_stream.hpp"
#include "actors/policy_client/retry_policy.hpp"
#include "actors/policy_client/token_exchange.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct attempt_reading;

// INTERNAL: what the actor hears from its transport and from its timer; in-process only.

/// Answers are in the inbox.
struct inbox_filled {};

/// The timer of this number is over.
struct timer_over {
  uint32_t number = 0;
};

/// What an attempt of a job was answered with.
struct attempt_answered {
  uint64_t job = 0;
  uint32_t attempt = 0; ///< of the job
  std::shared_ptr<http_response> response;
  std::shared_ptr<chat_stream> stream; ///< where the answer is streamed
};

/// What the server says of its models.
struct models_answered {
  std::shared_ptr<http_response> response;
};

/// What it says of its load.
struct metrics_answered {
  std::shared_ptr<http_response> response;
};

using policy_event =
    std::variant<inbox_filled, timer_over, attempt_answered, models_answered, metrics_answered>;

/// INTERNAL: events of the transport that the actor has not seen. One call is for all that come
/// until it looks: what the transport's thread finds in one round wakes the actor once.
class policy_inbox {
public:
  /// True when the actor is to be called.
  bool put(policy_event event);
  std::vector<policy_event> take();

private:
  std::mutex mutex_;
  std::vector<policy_event> events_; // guarded by mutex_
};

/// INTERNAL: the side of the actor that only its transport and its timer know.
using policy_event_sink = caf::typed_actor<caf::reacts_to<policy_event>>;

class http_policy_client_state {
public:
  static inline const char* name = "policy-client";

  using result_message = Message<wire::CompletionResult>;
  using promise = admitted_job::promise;
  using time_point = admitted_job::time_point;

  explicit http_policy_client_state(policy_client_actor::pointer self);
  ~http_policy_client_state();

  /// Takes the configuration, the key and the transport; what fails here is answered to all
  /// requests.
  void start(policy_config config);

  promise accept(const envelope& env, const Message<wire::CompletionRequest>& request);
  void handle(const policy_event& event);
  void drop_asker(const caf::actor_addr& asker);
  Message<wire::Snapshot> snapshot();
  std::vector<tried_request> tried_requests() const;
  std::vector<streaming_request> streaming_requests() const;

  /// Ends everything in flight and answers all with `why`.
  void abort(const error& why);

private:
  using timer_set = std::set<std::pair<time_point, uint64_t>>;

  // A completion that is asked for, over all its attempts.
  struct job : admitted_job {
    std::string session;
    uint32_t turn = 0;
    time_point sent; ///< of the last attempt
    timer_set::iterator at_deadline;
    timer_set::iterator at_due; ///< of the next attempt; past the end: none waits
    uint32_t attempts = 0;
    attempt_history history;
    uint64_t transfer = 0;   ///< in flight when not 0
    bool trial = false;      ///< of the half-open circuit
    bool overdue = false;    ///< its transfer was stopped at the deadline
    uint32_t max_tokens = 0; ///< what the context leaves, once the server has said so; 0: as asked
    time_point judged_at;    ///< then at the latest
    std::optional<completion_answer> partial; ///< what came until it was stopped
    std::string request_id;
    std::shared_ptr<token_exchange> tokens; ///< null: asked by chat
    std::shared_ptr<chat_stream> stream;    ///< in flight with SSE; else null
    error last;                             ///< why the last attempt failed
  };

  time_point now() const;
  void take(inbox_filled);
  void take(timer_over which);
  void take(attempt_answered& answer);
  void take(models_answered& answer);
  void take(metrics_answered& answer);
  void pump();
  void dispatch(job& x);
  void send(job& x);
  http_request make_request(job& x, const std::shared_ptr<chat_stream>& stream);
  void probe();
  void poll_metrics();
  template <class Answered>
  void get(const std::string& url);

  void on_response(job& x, attempt_answered& event);
  void adapt(const job& x, const attempt_reading& reading, bool good);
  void retry_or_give_up(job& x, const attempt_decision& decision);
  void expire(job& x);
  bool stop_at_deadline(job& x);
  void judge_overdue(job& x);
  bool gave_sign(const job& x) const;
  void note_sign();
  void note_swallowed(const completion_answer& answer);
  void give_up(job& x);
  bool first_contact_failed(bool at_deadline = false);
  void hold(const error& why);
  bool is_held(const error& why) const;

  void settle(completion_answer& answer);
  void succeed(job& x, completion_answer answer);
  void fail(job& x, error why, completion_answer partial = {});
  void finish(job& x, result_message result);
  void stop_waiting(job& x);
  void leave_flight(job& x, bool ended = false);
  void deliver();
  void schedule();
  std::string describe(const job& x) const;
  void tell(log_level level, const job& x, const std::string& what) const;
  void tell_retry(const job& x, std::chrono::milliseconds wait) const;
  void tell_held();

  policy_client_actor::pointer self_;
  policy_config config_;
  secret_ptr key_;
  std::shared_ptr<const log_redaction> hides_key_; ///< for the log
  std::shared_ptr<http_transport> transport_;
  std::shared_ptr<policy_inbox> inbox_ = std::make_shared<policy_inbox>();
  std::unordered_map<uint64_t, job> jobs_;
  std::vector<std::pair<promise, result_message>> answers_; ///< not delivered yet
  timer_set timers_;                                        ///< deadlines, and ends of back-offs
  asker_list askers_;
  fair_queue queue_;
  adaptive_window window_;
  circuit_breaker breaker_;
  uint64_t next_job_ = 1;
  uint32_t in_flight_ = 0;
  uint32_t waiting_ = 0;

  // Admission: while held, all requests get the fault that concerns all of them.
  error held_;
  time_point held_until_{};
  uint64_t ended_by_hold_ = 0; ///< requests that the log was not told of yet
  bool told_held_ = true;
  bool reached_ = false;
  bool model_known_ = false;
  bool probed_ = false;
  time_point last_sign_{};        ///< when the server last answered anything
  uint32_t overdue_in_a_row_ = 0; ///< requests, since one was completed
  bool asking_sign_ = false;
  uint32_t swallowed_in_a_row_ = 0; ///< answers that a parser of the server left without content
  std::string swallows_;            ///< what to do about it, when there were several
  std::optional<time_point> first_attempt_;

  // /metrics of servers that tell of their load.
  bool polling_ = false;
  time_point next_poll_{};

  uint32_t timer_number_ = 0;
  time_point timer_at_ = time_point::max();

  std::vector<std::string> models_;
  error last_error_;
  uint64_t completed_ = 0;
  uint64_t failed_ = 0;
  uint64_t attempts_ = 0;
  uint64_t retries_ = 0;
  uint64_t logprobs_dropped_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t completion_tokens_ = 0;
  double seconds_ = 0;
};

/// INTERNAL: puts an event into the actor's inbox and calls it unless it is gone; callable from any
/// thread.
void tell_policy_client(const caf::weak_actor_ptr& to, policy_inbox& inbox, policy_event event);

policy_client_actor::behavior_type
http_policy_client(policy_client_actor::stateful_pointer<http_policy_client_state> self,
                   policy_config config);

} // namespace kernelmill

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::policy_event)
