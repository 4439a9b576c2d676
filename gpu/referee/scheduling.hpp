#pragma once

// What the scheduler tells about a process from outside, and asking it for precedence.

#include <string>

namespace kernelmill {

/// Seconds that the main thread of a process was ready to run and had no core, so far.
double waited_seconds(int pid) noexcept;

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

/// Undoes keep_beside() for all threads of a process.
void let_roam(int pid) noexcept;

/// Lets the calling thread run on every core again that it had before the first run_beside().
void run_anywhere() noexcept;

} // namespace kernelmill
