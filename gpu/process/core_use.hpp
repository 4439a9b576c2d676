#pragma once

// What processes have had of the machine's cores, and whether they want one, as /proc tells it.

#include <string>
#include <vector>

namespace kernelmill {

/// What the stat file of a process or a thread, in its folder of /proc, has behind the name, which
/// may hold anything: " R 1 ...". Empty when it is gone.
std::string stat_behind_name(const std::string& folder);

/// Seconds of all threads of a process, to 10 ms.
struct processor_times {
  double user = 0;
  double system = 0;
  double ended_children = 0; ///< of the processes that it has waited for
};
processor_times processor_times_of(int pid);

/// The kernel's letters for what the threads of a process do; empty when it is gone.
std::string thread_states(int pid);

/// Who started a process, or took it over; 0 when it is gone.
int parent_of(int pid);

/// All that a process started and those did, parents before children.
std::vector<int> descendants_of(int pid);

/// Whether a thread of the process is running, or ready to.
bool wants_core(int pid);

/// Seconds in which the process's first thread was ready and had no core, since it began; 0 where
/// the kernel does not say.
double seconds_without_core(int pid);

/// Whether the process was stopped, by SIGSTOP say.
bool is_stopped(int pid);

/// Whether a control group that the process is in was frozen, or one around it: it has no core, and
/// no signal tells of it.
bool is_frozen(int pid);

struct core_use {
  double seconds = 0;      ///< with those of processes that have ended
  bool wants_more = false; ///< one of them is running, or ready to
  bool stopped = false;    ///< one of them was stopped from outside, or all were frozen
};

/// That of a process and all that it started.
core_use core_use_of_all(int pid);

} // namespace kernelmill
