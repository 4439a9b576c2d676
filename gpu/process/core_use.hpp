#pragma once

namespace kernelmill {

struct core_use {
  double seconds = 0;      ///< of cores, with those of processes that have ended
  bool wants_more = false; ///< a thread of them is running, or ready to
};

/// What a process and all that it started have had of the machine's cores, by /proc; to 10 ms each.
core_use core_use_of_all(int pid);

} // namespace kernelmill
