#include "actors/policy_client/adaptive_window.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kernelmill {

namespace {

// A figure older than this is no reason to hold anything.
constexpr std::chrono::seconds fresh{15};

// A few waiting requests keep a batch full; a queue of a tenth of the batch does no more than that.
constexpr double tolerated_waiting = 4;
constexpr double tolerated_share = 0.1;

// Shortly before a cache is full the server begins to evict or to recompute.
constexpr double full_cache = 0.95;

constexpr double shrink = 7.0 / 8.0;

} // namespace

adaptive_window::adaptive_window(uint32_t limit, uint32_t first)
    : limit_(std::max(limit, 1u)), size_(std::clamp(first, 1u, limit_)), content_(limit_) {
  // nop
}

bool adaptive_window::held(time_point now) const noexcept {
  return now < held_until_;
}

void adaptive_window::succeed(time_point now, uint32_t in_flight) {
  // A window with free places has not been tried.
  if (in_flight < size() || held(now)) return;
  auto places = size_ < content_ ? 1.0 : std::max(1.0, content_ / 16.0) / size_;
  size_ = std::min(size_ + places, static_cast<double>(limit_));
}

void adaptive_window::refuse(time_point now, time_point sent) {
  if (cuts_ > 0 && sent <= last_cut_) return;
  ++cuts_;
  last_cut_ = now;
  size_ = content_ = std::max(1.0, size_ / 2.0);
}

void adaptive_window::observe(time_point now, const server_load& load) {
  held_until_ = time_point{};
  auto running = load.running.value_or(0);
  auto waiting = load.waiting.value_or(0);
  auto cache = load.cache.value_or(0);
  auto many_wait = waiting > tolerated_waiting + tolerated_share * running;
  auto cache_full = cache >= full_cache;
  if (!many_wait && !cache_full) return;
  held_until_ = now + fresh;
  held_for_ = many_wait ? fmt::format("{:.0f} requests wait in the server", waiting)
                        : fmt::format("the server's cache is {:.0f} % full", cache * 100);
  if (!many_wait || waiting <= running) return;
  auto floor = std::min(size_, std::max(1.0, running));
  size_ = std::max(size_ * shrink, floor);
  content_ = std::min(content_, size_);
}

std::string adaptive_window::why(time_point now) const {
  if (held(now)) return "held: " + held_for_;
  if (size() == limit_) return "at policy.max_in_flight";
  if (cuts_ > 0) return fmt::format("growing; halved {} times by 429 and 503", cuts_);
  return "growing";
}

} // namespace kernelmill
