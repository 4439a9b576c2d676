#pragma once

// Time as a deadline should count it: a process that looks every few milliseconds and finds seconds
// gone was itself stopped, frozen with its machine, or had no core. That is nobody's time.

#include <algorithm>

namespace kernelmill {

/// Nor is the time in which the process that is waited for was ready and had no core: on a busy machine
/// that may be most of it. A process can bring that about itself, with threads; so such time prolongs a
/// deadline to a few times its length and no more.
///
/// Thread safety: none. Seconds of one clock throughout.
class awake_time {
public:
  static constexpr double longest_look = 0.1; ///< more between two looks was not our doing
  static constexpr double most_patience = 4;  ///< deadlines' worth of time without a core

  explicit awake_time(double now) noexcept : seen_(now) {}

  /// Looks; returns the seconds that count so far. `paused`: since the last look nothing counts.
  double look(double now, bool paused = false) noexcept {
    double passed = now - seen_;
    seen_ = now;
    double counts = paused ? 0 : std::min(passed, longest_look);
    lost_ += passed - counts;
    return counted_ += counts;
  }

  /// Whether more than `deadline` counts. `without_core`: seconds of the process so far, see
  /// seconds_without_core(); what it had at the first question was before.
  bool late(double deadline, double without_core) noexcept {
    if (first_without_core_ < 0) first_without_core_ = without_core;
    double waited = std::max(0.0, without_core - first_without_core_);
    return counted_ - std::min(waited, most_patience * deadline) > deadline;
  }

  double lost() const noexcept { return lost_; } ///< seconds that did not count

private:
  double seen_;
  double counted_ = 0;
  double lost_ = 0;
  double first_without_core_ = -1; ///< not asked yet
};

} // namespace kernelmill
