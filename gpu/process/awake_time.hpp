#pragma once

// Time as a deadline should count it: a process that looks every few milliseconds and finds seconds
// gone was itself stopped, frozen with its machine, or had no core. That is nobody's time.

#include <algorithm>

namespace kernelmill {

/// Thread safety: none. Seconds of one clock throughout.
class awake_time {
public:
  static constexpr double longest_look = 0.1; ///< more between two looks was not our doing

  explicit awake_time(double now) noexcept : seen_(now) {}

  /// Looks; returns the seconds that count so far. `paused`: since the last look nothing counts.
  double look(double now, bool paused = false) noexcept {
    double passed = now - seen_;
    seen_ = now;
    double counts = paused ? 0 : std::min(passed, longest_look);
    lost_ += passed - counts;
    return counted_ += counts;
  }

  double lost() const noexcept { return lost_; } ///< seconds that did not count

private:
  double seen_;
  double counted_ = 0;
  double lost_ = 0;
};

} // namespace kernelmill
