#pragma once

// The one seam to kj-http: an HTTP/1.1 server on a thread of its own. Routes and their handlers are
// given at its start; what they answer with is an exchange. Whatever a client does, the server
// holds no more than its limits say: connections, bytes, and time.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "launch/server/http/router.hpp"
#include "messages/error.hpp"

namespace kernelmill::http {

/// What is refused is answered in JSON.
struct limits {
  /// Above: 429 and the connection is closed, with TLS without an answer; before that the oldest
  /// one is closed that has not made a request which is allowed.
  uint32_t connections = 1024;
  uint32_t strangers_of_address = 256; ///< of such connections; above: the oldest is closed
  uint64_t head_bytes = 32 << 10;      ///< of one request's line and headers; above: 431
  uint64_t body_bytes = 8 << 20;       ///< of one request; above: 413
  uint64_t bodies_bytes = 256 << 20;   ///< of all that are being received; above: 429
  uint64_t stream_bytes = 4 << 20;     ///< of an answer's pieces that a client has yet to read
  std::chrono::milliseconds header_time{10'000}; ///< for a whole head; above: 408
  std::chrono::milliseconds body_time{30'000};   ///< for a whole body; above: 408
  std::chrono::milliseconds write_time{30'000};  ///< for 64 KiB of an answer; above: cut
  std::chrono::milliseconds idle_time{30'000};   ///< between two requests; above: closed
  std::chrono::milliseconds socket_time{
      3'600'000}; ///< between two messages of a WebSocket's client
};

struct server_options {
  std::string host = "127.0.0.1"; ///< an address of this machine, or localhost
  uint16_t port = 0;              ///< 0: any free one
  secret_ptr token;               ///< or clients: required where `host` is not of loopback
  limits bounds;
  std::string certificate_file = {}; ///< PEM; with its key: HTTPS in place of HTTP
  std::string key_file = {};
  std::vector<client_rules> clients = {}; ///< each with a token of its own, and bounds
  bool guard_reads = false; ///< on loopback, foreign names in `Host` are refused for reads too
};

class server {
public:
  /// Listens and serves. Fails when the address cannot be used, or when it is not of the loopback
  /// interface and there is no token (category token_missing).
  static expected<std::unique_ptr<server>> start(std::vector<route> routes, server_options options);

  /// Closes every connection, stops and joins the thread. Exchanges may outlive it.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  uint16_t port() const noexcept;
  std::string url() const;               ///< "http://127.0.0.1:4711"
  uint32_t connections() const noexcept; ///< open now

private:
  class thread;
  explicit server(std::unique_ptr<thread> impl);
  std::unique_ptr<thread> thread_;
};

} // namespace kernelmill::http
