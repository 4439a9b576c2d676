#pragma once

// Clients that each have a token of their own, and how much each may ask: a plain value, told the
// time, of the server's thread alone.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/policy_client/http/secret.hpp"
#include "messages/error.hpp"

namespace kernelmill::http {

/// One client as its file has it. 0 of a bound: none.
struct client_rules {
  std::string name;
  secret_ptr token;
  uint32_t in_flight = 0;   ///< requests at once; a WebSocket is one
  uint32_t per_minute = 0;  ///< requests; so many may come at once after a minute of silence
  uint32_t evaluations = 0; ///< that wait or run
  double share = 1;         ///< of the slots, where others want them too
};

/// Reads {"clients": [{"name", "token", "in_flight", "per_minute", "evaluations", "share"}]}.
/// Errors: "token_missing", "token_exposed", "bad_clients".
expected<std::vector<client_rules>> load_clients(const std::string& path);

class client_gate {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit client_gate(std::vector<client_rules> clients);

  /// The client with the token of a request's header Authorization.
  std::optional<size_t> find(std::string_view authorization) const;
  const client_rules& rules(size_t client) const { return clients_[client].rules; }

  struct refusal {
    std::string why;
    uint32_t after_s = 1; ///< when to ask again
  };
  /// Lets a request in, or says why not. Each that is in leaves once.
  std::optional<refusal> enter(size_t client, time_point now);
  void leave(size_t client);

private:
  struct entry {
    client_rules rules;
    std::string header; ///< "Bearer TOKEN"
    uint32_t inside = 0;
    double tokens = 0; ///< requests that it may send now
    time_point counted{};
  };
  std::vector<entry> clients_;
};

} // namespace kernelmill::http
