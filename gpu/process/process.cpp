#include "gpu/process/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/process/pidfd.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

bool exit_status::was_ended_by_others() const noexcept {
  constexpr std::array own{SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
  return signal != 0 && std::find(own.begin(), own.end(), signal) == own.end();
}

child::child(int pid, int pidfd, int status_fd) noexcept
    : pid_(pid), pidfd_(pidfd), status_fd_(status_fd) {
  // nop
}

child::child(child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::exchange(other.pidfd_, -1)),
      status_fd_(std::exchange(other.status_fd_, -1)), ended_(std::exchange(other.ended_, {})) {
  // nop
}

child& child::operator=(child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(status_fd_, other.status_fd_);
  std::swap(ended_, other.ended_);
  return *this;
}

child::~child() {
  kill();
  if (pidfd_ >= 0) ::close(pidfd_);
  if (status_fd_ >= 0) ::close(status_fd_);
}

bool child::running() const {
  if (pidfd_ < 0 || ended_) return false;
  pollfd x{pidfd_, POLLIN, 0};
  return ::poll(&x, 1, 0) == 0;
}

expected<exit_status> child::wait(int deadline_ms) {
  if (ended_) return *ended_;
  if (status_fd_ < 0)
    return infrastructure_error("no_process", "failed to wait for a process: none was started");
  if (!wait_readable(status_fd_, deadline_ms))
    return infrastructure_error("timeout", "failed to wait for process " + std::to_string(pid_) +
                                               ": it still runs after " +
                                               std::to_string(deadline_ms) + " ms");
  int status = 0;
  if (read_retrying(status_fd_, &status, sizeof status) != sizeof status)
    return infrastructure_error("spawner_lost",
                                "failed to wait for process " + std::to_string(pid_) +
                                    ": its kernelmill-spawner has died",
                                "start it again; the process was killed with its spawner");
  exit_status result;
  if (WIFSIGNALED(status))
    result.signal = WTERMSIG(status);
  else
    result.code = WEXITSTATUS(status);
  ended_ = result;
  return result;
}

void child::kill() noexcept {
  // Through the pidfd, so that a process that got the number of an ended one is never hit.
  if (pidfd_ >= 0 && !ended_) signal_pidfd(pidfd_, SIGKILL);
}

} // namespace kernelmill
