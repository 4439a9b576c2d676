#pragma once

// What the scheduler tells about a process from outside, and asking it for precedence.

#include <vector>

#include <sched.h>

namespace kernelmill {

/// Seconds that the main thread of a process was ready to run and had no core, so far.
double waited_seconds(int pid) noexcept;

/// The ids of a process's threads, in order.
std::vector<int> threads_of(int pid);

/// Puts the threads of a process, and those that they start, ahead of what else the machine runs.
/// Without the right to do so nothing happens: times are noisier then, for all alike.
void raise_priority(int pid) noexcept;

/// Moves the calling thread to the core on which the process ran last. Waking a process on another
/// core costs 5 us more here than on the same one where that core is awake, and 50 us where it
/// sleeps.
void run_beside(int pid) noexcept;

/// Keeps the main thread of a process, and threads that it starts from now on, on the core of the
/// calling one, which stays where it is once it is on one: a process that was stopped is else woken
/// on any other core that is idle. Without the right to do so nothing happens.
void keep_beside(int pid) noexcept;

/// The cores that the main thread of a process may use; none where nobody can tell.
cpu_set_t cores_of(int pid) noexcept;

/// Gives all threads of a process these cores; does nothing where there are none.
void let_roam(int pid, const cpu_set_t& cores) noexcept;

/// While one lives the calling thread has the first of two cores for itself, and those that it
/// times take turns on the second. Both wait by looking: on one core each would keep the other from
/// it until the scheduler's next tick, and a stopped process is put on any core when it goes on.
/// Without cores, or without the right to it, nothing happens. Thread safety: none.
class cores_apart {
public:
  explicit cores_apart(const std::vector<int>& cores) noexcept;
  ~cores_apart();
  cores_apart(const cores_apart&) = delete;
  cores_apart& operator=(const cores_apart&) = delete;

  /// Puts the main thread of a process, and threads that it starts from now on, on the second core,
  /// for good. Threads that it has stay where they are.
  void hold(int pid) const noexcept;

private:
  cpu_set_t before_{}; // of the calling thread
  int timed_ = -1;     // core
};

/// Lets the calling thread run on every core again that it had before the first run_beside().
void run_anywhere() noexcept;

} // namespace kernelmill
