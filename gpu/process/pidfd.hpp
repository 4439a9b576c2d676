#pragma once

// glibc 2.36 declares these without extern "C" (its bug 29617), so the calls are made by number.

#include <sys/syscall.h>
#include <unistd.h>

namespace kernelmill {

inline int open_pidfd(int pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

inline int signal_pidfd(int pidfd, int signal) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

} // namespace kernelmill
