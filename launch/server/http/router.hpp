#pragma once

// Which handler a request is for, and whether it may reach it: plain functions on plain values.

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/policy_client/http/secret.hpp"
#include "launch/server/http/clients.hpp"
#include "launch/server/http/exchange.hpp"

namespace kernelmill::http {

struct route {
  std::string method;          ///< "GET" (HEAD too), "POST", "DELETE"
  std::string path;            ///< "/v1/evaluations/{id}"
  std::set<std::string> query; ///< parameters that it knows; others are refused by name
  handler handle;
  bool open = false;   ///< needs no token
  bool socket = false; ///< a WebSocket: its exchange is open, and may change something
};

/// The clients that may ask.
struct access {
  secret_ptr token;                     ///< null: no token is required
  std::shared_ptr<client_gate> clients; ///< null: `token` is that of all
  /// Names by which this server may be called where something changes; empty: any.
  std::set<std::string> hosts;
  /// Also where nothing changes: a name that was made to point here must not read either.
  bool guard_reads = false;
};

class router {
public:
  router(std::vector<route> routes, access allowed);

  /// A route with `request.parts` and `request.query` filled in, or the refusal. Looks at
  /// everything but the body. `target` is the path with its query, as it was sent.
  std::variant<const route*, response> choose(request& x, const std::string& target) const;

  const std::vector<route>& routes() const noexcept { return routes_; }
  client_gate* clients() const noexcept { return access_.clients.get(); }

private:
  const route* find(request& x, std::set<std::string>& methods) const;
  std::optional<response> check_access(const route& to, request& x) const;

  std::vector<route> routes_;
  access access_;
};

/// Whether a request of this method may change something.
bool changes_state(const std::string& method);

/// "localhost" of "localhost:80", "::1" of "[::1]:80"; in lower case.
std::string host_of(const std::string& authority);

/// Reads a bearer token from a file. Refuses a file that others may read, and one without a token.
inline constexpr size_t shortest_token = 16; ///< characters; also of a client's

expected<secret_ptr> load_token(const std::string& path);

} // namespace kernelmill::http
