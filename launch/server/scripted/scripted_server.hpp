#pragma once

// An OpenAI-compatible server that says what a script says: POST /v1/chat/completions (JSON and
// server-sent events), GET /v1/models, /health and /metrics, and the routes for token ids of the
// engine that the script names (scripted_kinds.hpp). One thread with kj-http. It lets a run, a
// demonstration or a test talk real HTTP, with real faults, and get the same answers on every
// machine.

#include <functional>
#include <memory>
#include <string>

#include "launch/server/scripted/scripted_reply.hpp"

namespace kernelmill {

/// What the server did with one request for a completion.
struct scripted_observation {
  scripted_request request;
  int status = 0;            ///< 0: no answer was sent
  std::string fault;         ///< name of the fault that hit it, or empty
  std::string authorization; ///< scheme only, e.g. "Bearer"; the key is not repeated
};

struct scripted_server_options {
  std::string host = "127.0.0.1";
  uint16_t port = 0; ///< 0: any free one
  /// Called on the server's thread for each of them, before it is answered.
  std::function<void(const scripted_observation&)> observe;
};

class scripted_server {
public:
  /// Fails when the address cannot be used, or the key that the script requires is not set.
  static expected<std::unique_ptr<scripted_server>> start(policy_script script,
                                                          scripted_server_options options = {});
  static expected<std::unique_ptr<scripted_server>> start(policy_script script, std::string host,
                                                          uint16_t port);

  /// Closes every connection, stops, and joins the thread.
  ~scripted_server();
  scripted_server(const scripted_server&) = delete;
  scripted_server& operator=(const scripted_server&) = delete;

  uint16_t port() const noexcept;
  /// Returns "http://127.0.0.1:4711/v1".
  std::string base_url() const;
  /// Requests for completions so far.
  uint64_t requests() const noexcept;
  /// Those of them that a fault hit.
  uint64_t faults() const noexcept;
  /// Most chat requests that were in flight at once, since it was last asked for.
  uint64_t take_peak() noexcept;

private:
  class thread;
  explicit scripted_server(std::unique_ptr<thread> impl);
  std::unique_ptr<thread> thread_;
};

} // namespace kernelmill
