#pragma once

// Documents are made by a few threads of their own, since the server's thread must not wait.
// Requests for the same document at about the same time share one making, as long as it began after
// the last change that their clients can know of: a client that asks because of an event sees its
// effect.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launch/server/http/exchange.hpp"

namespace kernelmill::page {

/// Thread-safe. Destroying it ends its threads; what has not begun is answered 503.
class answers {
public:
  using maker = std::function<http::response()>;

  /// `version` counts changes that were told to readers.
  answers(unsigned threads, std::function<uint64_t()> version);
  ~answers();

  /// Answers with what `make` returns, or with what it returned for the same key less than `fresh`
  /// ago, if nothing has changed since it was called. Answers 503 when too many wait.
  void ask(const std::string& key, std::chrono::milliseconds fresh, maker make,
           http::exchange_ptr to);

  /// The same for what changes all the time and is only sampled: no change makes it old, and making
  /// it takes a small part of the processor, however many ask: what took long is kept for longer,
  /// up to a second.
  void ask_sampled(const std::string& key, maker make, http::exchange_ptr to);

  /// The same for what nothing changes but a change of the key: kept for a minute after each use.
  void ask_settled(const std::string& key, maker make, http::exchange_ptr to);

  /// A part of work that can wait: returns whether there is more. It returns early, with true, once
  /// `waiting` questions are above 0.
  using idle_step = std::function<bool(const std::atomic<size_t>& waiting)>;

  /// Does `step` as long as it returns true, by a thread that has nothing to answer.
  void when_idle(idle_step step);

private:
  using clock = std::chrono::steady_clock;

  /// What makes a kept document old, besides its age.
  enum class keeping : unsigned char {
    until_change, ///< a change that was told to readers
    sampled,      ///< nothing, and its age counts from what making it took
    settled,      ///< nothing, and its age counts from its last use
  };

  struct document {
    maker make;
    std::chrono::milliseconds fresh{0};
    keeping how = keeping::until_change;
    std::vector<http::exchange_ptr> waiting; ///< for the next making
    std::vector<http::exchange_ptr> sharing; ///< the one that is under way
    bool queued = false, working = false;
    uint64_t version = 0; ///< when the latest making began
    http::response made;
    clock::time_point until; ///< when it is too old
  };

  void put(const std::string& key, keeping how, std::chrono::milliseconds fresh, maker make,
           http::exchange_ptr to);
  void work();
  void do_idle(std::unique_lock<std::mutex>& lock);
  void make_one(std::unique_lock<std::mutex>& lock, const std::string& key);
  void forget_old(clock::time_point now);

  static constexpr size_t most_waiting = 512;
  static constexpr size_t most_kept = 64;

  const std::function<uint64_t()> version_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, document> documents_;
  std::deque<std::string> todo_;
  std::atomic<size_t> waiting_ = 0; ///< as many as todo_ has
  idle_step idle_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

} // namespace kernelmill::page
