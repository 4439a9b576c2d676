#pragma once

// The SEAT KEEPER: it owns the seats, passes what agents ask to the servers behind them, and keeps
// what a trainer needs of each answer. It never waits: libcurl's thread brings the answers. What it
// is sent never leaves the process.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/policy_client/http/http_transport.hpp"
#include "actors/policy_client/policy_config.hpp"
#include "launch/server/api/seat_capture.hpp"
#include "launch/server/http/exchange.hpp"
#include "messages/actors.hpp"

namespace kernelmill::services {

struct open_seat {
  policy_config server;
  secret_ptr key;   ///< of the server; null: none
  std::string root; ///< under which the agent reaches us: "http://127.0.0.1:8700"
};
struct seat_trace {
  std::string id;
};
struct close_seat {
  std::string id;
};
struct seat_models {
  std::string id;
};
/// An agent's request; `body` as it came.
struct seat_completion {
  std::string id;
  bool chat = true;
  std::string body;
};

struct seat_call {
  std::variant<open_seat, seat_trace, close_seat, seat_models, seat_completion> what;
  http::exchange_ptr to;
};
using seat_call_ptr = std::shared_ptr<seat_call>;

/// A request that the server has answered.
struct seat_answer {
  std::string id;
  size_t place = 0; ///< in the trace
  seat_request asked;
  bool models = false; ///< it was for /v1/models
  secret_ptr key;      ///< that it was asked with: no answer holds it
  http_response got;
  http::exchange_ptr to;
};
using seat_answer_ptr = std::shared_ptr<seat_answer>;

} // namespace kernelmill::services

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::services::seat_call_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::services::seat_answer_ptr)

namespace kernelmill::services {

/// The SEAT KEEPER actor interface.
using seat_keeper_actor = status_actor::extend<
    // Does what a client asks for; answers its exchange.
    caf::reacts_to<atom::query, seat_call_ptr>,
    // INTERNAL: a server has answered.
    caf::reacts_to<atom::finished, seat_answer_ptr>,
    // INTERNAL: looks for unused seats.
    caf::reacts_to<atom::tick>>;

class seat_keeper_state {
public:
  static inline const char* name = "seat-keeper";

  explicit seat_keeper_state(seat_keeper_actor::pointer self) : self_(self) {}

  void obey(const seat_call& x);
  void on_answer(const seat_answer& x);
  void look();
  Message<wire::Snapshot> snapshot() const;

private:
  using clock = std::chrono::steady_clock;

  struct seat {
    policy_config server;
    secret_ptr key;
    std::vector<std::optional<seat_row>> rows; ///< in the order of the requests
    size_t bytes = 0;
    size_t asking = 0; ///< requests in flight
    clock::time_point used;
  };

  void do_it(const open_seat& x, const http::exchange_ptr& to);
  void do_it(const seat_trace& x, const http::exchange_ptr& to);
  void do_it(const close_seat& x, const http::exchange_ptr& to);
  void do_it(const seat_models& x, const http::exchange_ptr& to);
  void do_it(const seat_completion& x, const http::exchange_ptr& to);
  seat* find(const std::string& id, const http::exchange_ptr& to);
  void send(const seat& at, std::shared_ptr<seat_answer> x);
  http::response trace_of(const std::string& id, const seat& x) const;
  void forget(std::map<std::string, seat>::iterator i);

  seat_keeper_actor::pointer self_;
  std::shared_ptr<http_transport> transport_; ///< null before the first seat
  std::map<std::string, seat> seats_;
  size_t bytes_ = 0; ///< of all traces
};

seat_keeper_actor::behavior_type
seat_keeper(seat_keeper_actor::stateful_pointer<seat_keeper_state> self);

} // namespace kernelmill::services
