#pragma once

// Keeps a sick server from being hammered. Closed: requests flow. After so many failures in a row
// it opens: nothing is sent for a while. Then one request is let through; it closes the circuit or
// opens it for longer.

#include <chrono>
#include <cstdint>
#include <string_view>

namespace kernelmill {

class circuit_breaker {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::milliseconds;

  /// A threshold of 0 never opens.
  explicit circuit_breaker(uint32_t threshold = 8, duration first = duration{1000},
                           duration longest = duration{30000})
      : threshold_(threshold), first_(first), longest_(longest) {}

  enum class state : unsigned char { closed, open, half_open };

  state current() const noexcept { return state_; }
  std::string_view name() const noexcept {
    return state_ == state::closed ? "closed" : state_ == state::open ? "open" : "half_open";
  }
  time_point open_until() const noexcept { return until_; }

  /// Whether a request may be sent now.
  bool allows(time_point now) {
    if (state_ == state::open && now >= until_) {
      state_ = state::half_open;
      trial_ = false;
    }
    return state_ == state::closed || (state_ == state::half_open && !trial_);
  }

  /// A request was sent; returns true when it is the trial of a half-open circuit.
  bool begin() {
    trial_ = state_ == state::half_open;
    return trial_;
  }

  void succeed() {
    state_ = state::closed;
    failures_ = openings_ = 0;
    trial_ = false;
  }

  /// `random` spreads the ends of the pauses of many clients over a quarter of their length.
  void fail(time_point now, bool was_trial, uint64_t random) {
    ++failures_;
    if (state_ == state::half_open && was_trial) return open(now, random);
    if (state_ == state::closed && threshold_ > 0 && failures_ >= threshold_) open(now, random);
  }

  /// The trial ended without a word about the server's health.
  void release(bool was_trial) {
    if (was_trial) trial_ = false;
  }

private:
  void open(time_point now, uint64_t random) {
    auto pause = first_ * (int64_t{1} << (openings_ < 10 ? openings_ : 10));
    if (pause > longest_) pause = longest_;
    ++openings_;
    state_ = state::open;
    trial_ = false;
    until_ = now + pause + duration{random % static_cast<uint64_t>(pause.count() / 4 + 1)};
  }

  uint32_t threshold_;
  duration first_;
  duration longest_;
  state state_ = state::closed;
  uint32_t failures_ = 0;
  uint32_t openings_ = 0;
  bool trial_ = false;
  time_point until_{};
};

} // namespace kernelmill
