#pragma once

// What an exchange and the server's thread share. Only launch/server/http includes it.

#include <deque>
#include <mutex>
#include <optional>

#include "launch/server/http/exchange.hpp"

namespace kernelmill::http {

class exchange::state {
public:
  explicit state(size_t most_bytes) : most_bytes_(most_bytes) {}

  // -- the handler's side ----------------------------------------------------------------------
  void answer(response x);
  void open(response head);
  bool send(std::string piece);
  void close();
  void on_text(std::function<void(std::string)> call);
  void on_gone(std::function<void()> call);
  bool gone() const;
  bool answered() const;
  size_t pending() const;

  // -- the server's side -----------------------------------------------------------------------
  /// What there is to do next; nothing of it is set: wait.
  struct step {
    std::optional<response> head; ///< the answer, whole or of a stream
    bool whole = false;
    std::deque<std::string> pieces;
    bool end = false;
    bool cut = false; ///< the client lags too far
  };
  step next();
  /// Sets a callback for when next() has something, called once; false if it has already.
  bool wake_by(std::function<void()> wake);
  /// A message of a socket's client.
  void deliver(std::string text);
  /// The client has its whole answer.
  void finish();
  /// The client has left, or the server stops.
  void leave();

private:
  bool ready() const;
  void notify(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  size_t most_bytes_;
  std::optional<response> head_;
  bool answered_ = false, whole_ = false, closed_ = false, cut_ = false;
  bool gone_ = false, finished_ = false;
  std::deque<std::string> pieces_;
  size_t bytes_ = 0;
  std::function<void()> wake_, on_gone_;
  std::function<void(std::string)> on_text_;
};

} // namespace kernelmill::http
