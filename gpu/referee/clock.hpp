#pragma once

// The outside clock.

#include <time.h>

namespace kernelmill {

/// Seconds of CLOCK_MONOTONIC.
inline double now_seconds() noexcept {
  timespec x{};
  ::clock_gettime(CLOCK_MONOTONIC, &x);
  return static_cast<double>(x.tv_sec) + static_cast<double>(x.tv_nsec) * 1e-9;
}

} // namespace kernelmill
