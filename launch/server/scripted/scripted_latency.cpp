#include "launch/server/scripted/scripted_latency.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "messages/base/hash.hpp"

namespace kernelmill {

namespace {

// Between 0 and 1, both left out.
double unit(uint64_t draw, uint64_t which) {
  constexpr double steps = 9007199254740992.0; // 2^53
  return (static_cast<double>(mix(draw, which) >> 11) + 0.5) / steps;
}

double normal(uint64_t draw) {
  return std::sqrt(-2 * std::log(unit(draw, 1))) * std::cos(2 * std::numbers::pi * unit(draw, 2));
}

double drawn(const scripted_latency& x, uint64_t draw) {
  switch (x.kind) {
    case scripted_latency::shape::constant: return x.ms;
    case scripted_latency::shape::uniform: return x.low_ms + (x.high_ms - x.low_ms) * unit(draw, 0);
    case scripted_latency::shape::lognormal: return x.median_ms * std::exp(x.sigma * normal(draw));
  }
  return 0;
}

} // namespace

double wait_ms(const scripted_latency& x, uint64_t draw, uint64_t tokens) {
  auto whole = drawn(x, draw) + x.per_token_ms * static_cast<double>(tokens);
  return std::clamp(whole, 0.0, x.max_ms);
}

} // namespace kernelmill
