#pragma once

// One thread, libcurl's multi handles, one epoll set: thousands of requests in flight cost a
// socket and a buffer each. HTTP/1.1 with kept connections; a connection that was idle for longer
// than `keep_alive_s` is not used again, since servers close theirs after about five seconds, and
// one that turns out dead before the first byte of an answer is replaced without a word (libcurl
// sends the request again on a new connection).
//
// Redirects are not followed: a key must not travel to a host that the user did not name.
//
// Thread safety: submit() and cancel() may be called from any thread.

#include <memory>

#include "actors/policy_client/http/http_transport.hpp"

namespace kernelmill {

struct http_client_options {
  uint32_t keep_alive_s = 3;        ///< oldest idle connection that is used again
  uint32_t kept_connections = 1024; ///< idle ones at most, of each 64 in flight
  std::string ca_file;              ///< empty: the system's
};

class http_client final : public http_transport {
public:
  static expected<std::unique_ptr<http_client>> start(http_client_options options = {});

  /// Drops what is in flight without calling back, and joins the thread.
  ~http_client() override;

  uint64_t submit(http_request request, callback done) override;
  void cancel(uint64_t id) override;

private:
  class engine;
  explicit http_client(std::shared_ptr<engine> impl);
  std::shared_ptr<engine> engine_;
};

} // namespace kernelmill
