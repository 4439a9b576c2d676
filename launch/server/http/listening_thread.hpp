#pragma once

// A thread on which KJ listens at an address and serves until it is told to stop: what every server
// of ours begins and ends with.

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <kj/async-io.h>
#include <kj/async.h>

#include "messages/error.hpp"

namespace kernelmill::http {

struct listening_options {
  std::string thread_name; ///< at most 15 letters
  std::string host;
  uint16_t port = 0;       ///< 0: any free one
  uint64_t open_files = 0; ///< that its connections need; the limit of the process is raised
};

class listening_thread {
public:
  /// Lets others connect and waits until `work` or the thread is to end.
  using serving = std::function<void(kj::Promise<void> work)>;

  /// Makes what answers, on the thread, and calls `serve` once with what accepts connections.
  using body =
      std::function<void(kj::AsyncIoContext& io, kj::ConnectionReceiver& at, const serving& serve)>;

  listening_thread() = default;
  ~listening_thread(); ///< stops and joins
  listening_thread(const listening_thread&) = delete;
  listening_thread& operator=(const listening_thread&) = delete;

  /// Returns once clients can connect. Called once. Categories: address_in_use,
  /// address_unusable.
  expected<void> start(listening_options options, body work);

  uint16_t port() const noexcept { return port_; }

private:
  using promise = std::promise<expected<uint16_t>>;

  void run(promise& listening, const listening_options& options, const body& work);
  void serve(promise& listening, bool& told, const listening_options& options, const body& work);

  uint16_t port_ = 0;
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> stop_;
  std::thread worker_;
};

} // namespace kernelmill::http
