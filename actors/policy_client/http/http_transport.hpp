#pragma once

// What the policy client needs of HTTP: submit a request, hear once how it ended, or cancel it.
// `http_client` does it with libcurl; tests and the simulation put a scripted one in its place.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/policy_client/http/secret.hpp"

namespace kernelmill {

/// How a transfer ended, below HTTP. `none`: a whole response was received, whatever its status.
enum class transport_fault : unsigned char {
  none,
  unresolved, ///< the host has no address
  refused,    ///< no process listens, or no route
  connect_timeout,
  tls,               ///< the handshake broke
  untrusted,         ///< the certificate is not to be trusted
  reset,             ///< the connection broke before the response began
  truncated,         ///< it broke within the response
  malformed,         ///< what came is not HTTP, or its header is above the limit
  timeout,           ///< of the whole request
  stalled,           ///< no bytes for `stall_ms` after the response began
  too_large,         ///< the body is above the limit
  refused_by_reader, ///< `on_data` answered false
  cancelled,
  other,
};

/// Returns e.g. "connect_timeout".
std::string_view to_string(transport_fault x) noexcept;

struct http_request {
  bool post = true;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  secret_ptr bearer; ///< sent as `Authorization: Bearer`; null: not sent
  std::string body;
  size_t header_limit = size_t{16} << 10;
  size_t body_limit = size_t{4} << 20; ///< of what is received, whether kept or given to `on_data`
  uint32_t connect_timeout_ms = 5000;
  uint32_t timeout_ms = 0; ///< 0: none
  uint32_t stall_ms = 0;   ///< longest silence once the response has begun; 0: none
  /// Takes the body of a 200 as it comes instead of keeping it; false ends the transfer. Called
  /// on the transport's thread.
  std::function<bool(std::string_view)> on_data;
};

struct http_response {
  transport_fault fault = transport_fault::none;
  std::string detail; ///< what the transport says of the fault; never holds a header
  long status = 0;    ///< 0 when no status line came
  std::vector<std::pair<std::string, std::string>> headers; ///< names in lower case
  std::string body;
  double seconds = 0;

  /// Returns the last value of a header, or an empty text.
  std::string_view header(std::string_view lower_case_name) const;
};

class http_transport {
public:
  using callback = std::function<void(http_response)>;

  http_transport() = default;
  virtual ~http_transport() = default;
  http_transport(const http_transport&) = delete;
  http_transport& operator=(const http_transport&) = delete;

  /// Starts a request and returns its id, which is never 0. `done` is called exactly once, on a
  /// thread of the transport, unless the transport is destroyed first.
  virtual uint64_t submit(http_request request, callback done) = 0;

  /// Ends a request: its connection is closed, so the server stops generating. `done` is called
  /// with `cancelled` when the request was still running.
  virtual void cancel(uint64_t id) = 0;
};

} // namespace kernelmill
