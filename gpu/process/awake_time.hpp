#pragma once

// Time as a deadline should count it: a process that looks every few milliseconds and finds seconds
// gone was itself stopped, frozen with its machine, or had no core. That is nobody's time, unless
// who is waited for had the cores meanwhile.

#include <algorithm>
#include <optional>

namespace kernelmill {

/// Of cores, so far.
struct core_seconds {
  double worked = 0;  ///< of who is waited for: of all its threads, by the cores that it may have
  double starved = 0; ///< in which who looks was ready and had none
};

/// Nor is the time in which the process that is waited for was ready and had no core: on a busy
/// machine that may be most of it. Such time prolongs a deadline to a few times its length and no
/// more. A process can bring about both itself, with threads that leave no core to others or to one
/// another: so what it has worked counts in any case.
///
/// Thread safety: none. Seconds of one clock throughout.
class awake_time {
public:
  static constexpr double longest_look = 0.1; ///< more between two looks was not our doing
  static constexpr double most_patience = 4;  ///< deadlines' worth of time without a core

  /// Without `so_far`, cores count from the first look on.
  explicit awake_time(double now, std::optional<core_seconds> so_far = std::nullopt) noexcept
      : seen_(now), so_far_(so_far) {}

  /// Looks; returns the seconds that count so far. `paused`: since the last look nothing counts.
  double look(double now, bool paused = false, core_seconds so_far = {}) noexcept {
    double passed = now - seen_;
    auto before = so_far_.value_or(so_far);
    double worked = std::max(0.0, so_far.worked - before.worked);
    double starved = std::max(0.0, so_far.starved - before.starved);
    seen_ = now;
    so_far_ = so_far;
    double counts =
        paused ? 0 : std::min(passed, std::max(longest_look, std::min(worked, starved)));
    worked_ += std::min(worked, counts);
    lost_ += passed - counts;
    return counted_ += counts;
  }

  /// Whether more than `deadline` counts. `without_core`: seconds of the process so far, see
  /// seconds_without_core(); what it had at the first question was before.
  bool late(double deadline, double without_core) noexcept {
    if (first_without_core_ < 0) first_without_core_ = without_core;
    double waited = std::max(0.0, without_core - first_without_core_);
    return worked_ > deadline || counted_ - std::min(waited, most_patience * deadline) > deadline;
  }

  double lost() const noexcept { return lost_; } ///< seconds that did not count

private:
  double seen_;
  std::optional<core_seconds> so_far_;
  double counted_ = 0;
  double worked_ = 0; // of that
  double lost_ = 0;
  double first_without_core_ = -1; ///< not asked yet
};

} // namespace kernelmill
