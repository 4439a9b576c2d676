#pragma once

// How many requests a server gets at once. Pure: time comes with each call.
//
// The window starts modest. While every place is taken, each success adds a place, which doubles
// the window in a round trip, until the server refuses for the first time; from then on a round
// trip adds a sixteenth of what the server was last content with. A refusal for load (429, 503)
// halves the window, but only one of those that were on their way together: they say the same
// thing.
//
// A server that tells how many requests wait in it and how full its cache is can be kept from
// refusing. While too many wait the window does not grow; when more wait than run it shrinks, not
// below what runs.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kernelmill {

/// What a server says of itself, summed over its engines; `cache` is the fullest one's share.
struct server_load {
  std::optional<double> running;
  std::optional<double> waiting;
  std::optional<double> cache;
};

class adaptive_window {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// vLLM's and SGLang's own batches are about that large.
  static constexpr uint32_t default_first = 256;

  explicit adaptive_window(uint32_t limit = 1, uint32_t first = default_first);

  uint32_t size() const noexcept { return static_cast<uint32_t>(size_); }
  uint32_t limit() const noexcept { return limit_; }

  /// A request was answered; `in_flight` counts it too.
  void succeed(time_point now, uint32_t in_flight);

  /// A request that was sent at `sent` was refused for load.
  void refuse(time_point now, time_point sent);

  /// The server told of its load. Holds for as long as it is fresh.
  void observe(time_point now, const server_load& load);

  /// Returns why the window is what it is, e.g. "held: 120 requests wait in the server".
  std::string why(time_point now) const;

private:
  bool held(time_point now) const noexcept;

  uint32_t limit_;
  double size_;
  double content_;        ///< below it the window doubles in a round trip
  time_point last_cut_{}; ///< requests sent before it say nothing new
  time_point held_until_{};
  std::string held_for_;
  uint64_t cuts_ = 0;
};

} // namespace kernelmill
