#pragma once

// One reader of the event stream: what waits for it, and what it has lost.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "launch/server/http/exchange.hpp"
#include "launch/server/page/journal.hpp"
#include "launch/server/page/subscription.hpp"

namespace kernelmill::page {

/// At the journals: an event is out within 200 ms of its commit.
inline constexpr std::chrono::milliseconds look_every{50};
inline constexpr uint32_t looks_a_second = std::chrono::seconds{1} / look_every;
inline constexpr size_t most_queued = 1000; ///< events that wait for a slow reader
inline constexpr size_t most_queued_bytes = 1 << 20;

/// Thread safety: none.
struct stream_reader {
  using clock = std::chrono::steady_clock;

  subscription what;
  http::exchange_ptr to;
  places_by_run behind; ///< how far what it missed has been read
  std::deque<event_ptr> queue;
  size_t queued_bytes = 0;
  uint64_t lost = 0;
  clock::time_point breathed;

  /// Of what comes in one look.
  size_t most_turns() const {
    return what.most == 0 ? SIZE_MAX : std::max(1u, what.most / looks_a_second);
  }

  bool wants(const event& x) const;

  /// Queues an event. Where too many wait the oldest are lost; returns how many.
  size_t push(const event_ptr& one);

  /// Queues those that it wants; `left_out` are turns by run that no reader wanted. Returns as
  /// push().
  size_t take(const std::vector<event_ptr>& events, const places_by_run& left_out);

  /// Moves what fits to the connection. False: the client has gone.
  bool pump(clock::time_point now);

private:
  bool wants_turns_of(const std::string& run) const {
    return what.topics.contains("turns") && (what.run.empty() || what.run == run);
  }
  std::string text_of(const event& one);
};

} // namespace kernelmill::page
