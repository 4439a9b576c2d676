#pragma once

// What the scheduler tells about a process from outside, and asking it for precedence.

#include <string>

namespace kernelmill {

/// Seconds that the main thread of a process was ready to run and had no core, so far.
double waited_seconds(int pid) noexcept;

/// Puts the threads of a process, and those that they start, ahead of what else the machine runs.
/// Without the right to do so nothing happens: times are noisier then, for all alike.
void raise_priority(int pid) noexcept;

} // namespace kernelmill
