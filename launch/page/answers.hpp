#pragma once

// Documents are made by a few threads of their own, since the server's thread must not wait. Those
// who ask for the same at about the same time share one making.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launch/http/exchange.hpp"

namespace kernelmill::page {

/// Thread-safe. Destroying it ends its threads; what has not begun is answered 503.
class answers {
public:
  using maker = std::function<http::response()>;

  explicit answers(unsigned threads);
  ~answers();

  /// Answers with what `make` returns, or with what it returned for the same key less than `fresh`
  /// ago. Answers 503 when too many wait.
  void ask(const std::string& key, std::chrono::milliseconds fresh, maker make,
           http::exchange_ptr to);

private:
  using clock = std::chrono::steady_clock;

  struct document {
    maker make;
    std::vector<http::exchange_ptr> waiting;
    bool begun = false;
    http::response made;
    clock::time_point until; ///< when it is too old
  };

  void work();
  void forget_old(clock::time_point now);

  static constexpr size_t most_waiting = 512;
  static constexpr size_t most_kept = 64;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, document> documents_;
  std::deque<std::string> todo_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

} // namespace kernelmill::page
