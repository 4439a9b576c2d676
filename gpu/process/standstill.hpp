#pragma once

// Stops a process that is not trusted, with all that it started, and knows when it stands still:
// who is not timed does not run.

#include <cstddef>
#include <vector>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

enum class standing : unsigned char {
  still,    ///< no thread has a core or waits for one
  unknown,  ///< told to stop, but on its way still when the time was over: the machine is busy
  spawning, ///< started processes without end
};

/// Thread safety: none.
class standstill {
public:
  static constexpr double patience = 0.1; ///< seconds in which who was told has stopped

  standstill() = default;
  /// `pid` is that of the process itself, not of one that waits for it.
  explicit standstill(int pid);

  /// Tells the process itself to stop, without waiting: the first thing to do once a call is over.
  /// stop() is to follow.
  void halt() noexcept;

  /// Stops it and all that it started, and waits until they stand still.
  standing stop(double seconds = patience);

  bool stopped() const noexcept { return stopped_; }

  /// Stops who waits for the process to end, for as long as this is: the kernel wakes it whenever
  /// the process goes on, on that one's time: 2 us, or 8 where the two are on different cores. A
  /// process that has ended is then seen to be gone, and by nobody else, until release_waiter().
  void hold_waiter() noexcept;
  void release_waiter() noexcept;
  bool gone() const noexcept;

  /// Lets them go on, the process itself last. Nothing happens where it was not stopped.
  void go_on() noexcept;

  /// Seconds of a processor that they have used since they stood still; 0 where not stopped. What
  /// else they have used is the scheduler's to tell, see candidate_process::cpu_seconds().
  double worked() const noexcept;

private:
  struct member {
    int pid;
    double rested; ///< seconds of a processor when it stood still
  };

  bool tell_new_ones();
  standing settle(double seconds);

  int pid_ = 0;
  descriptor waiter_;           // empty while nobody is held
  descriptor pidfd_;            // its number may be somebody else's once it has ended
  std::vector<member> members_; // itself first
  bool stopped_ = false;
};

/// Whether no thread of a process that was told to stop has a core, waits for one, or sleeps so
/// that it must still wake to stop. Who is gone stands still.
bool stands_still(int pid);

/// Seconds of all threads of a process since it began, to nanoseconds; 0 when it is gone. Who has a
/// core right now, the kernel counts at its next tick or when it leaves the core.
double processor_seconds(int pid) noexcept;

} // namespace kernelmill
