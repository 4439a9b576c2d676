#pragma once

// Starting and ending processes. The node never forks (42 ms from a 1 GiB process): it asks a
// `kernelmill-spawner`, a tiny single-threaded program that forks and execs for it, keeps every
// child in its own session, reaps orphans as their subreaper, and kills all of them when the
// connection to its client closes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

struct resource_limits {      // 0 means: leave as it is
  uint64_t address_space = 0; ///< bytes (RLIMIT_AS)
  uint64_t file_size = 0;     ///< bytes (RLIMIT_FSIZE)
  uint64_t processes = 0;     ///< RLIMIT_NPROC
  uint64_t cpu_seconds = 0;   ///< RLIMIT_CPU
  uint64_t open_files = 0;    ///< RLIMIT_NOFILE
  uint64_t nice = 0;          ///< steps behind the spawner in the scheduler's eyes
};

struct process_spec {
  std::vector<std::string> argv;        ///< argv[0] is an absolute path
  std::vector<std::string> environment; ///< "NAME=value"; nothing is inherited
  std::string directory = "/";
  std::vector<std::pair<int, int>> descriptors; ///< {ours, theirs}; 0 to 2 default to /dev/null
  std::vector<int> cpus;                        ///< affinity; empty: as the spawner's
  resource_limits limits;
  std::vector<std::string> cgroups; ///< directories of cgroups that it joins before exec
};

struct exit_status {
  int code = -1;  ///< exit code, or -1 when a signal ended it
  int signal = 0; ///< the signal, or 0

  /// Whether a signal ended it that no process brings upon itself by a fault.
  bool was_ended_by_others() const noexcept;
};

/// A running process. Killed with its whole session when the handle goes.
/// Thread safety: one thread at a time.
class child {
public:
  child() = default;
  child(int pid, int pidfd, int status_fd) noexcept;
  child(child&&) noexcept;
  child& operator=(child&&) noexcept;
  ~child();

  int pid() const noexcept { return pid_; }

  /// False when it has ended, even if nobody has waited for it yet.
  bool running() const;

  /// Waits for the end. Fails with "timeout" when `deadline_ms` passes first; below 0 waits for
  /// ever. May be called again after it has answered, and answers the same.
  expected<exit_status> wait(int deadline_ms);

  /// SIGKILL to the process; its spawner kills the rest of its group, and every orphan that it
  /// left, when it reaps the process. Returns at once.
  void kill() noexcept;

private:
  int pid_ = -1;
  int pidfd_ = -1;     // becomes readable when the process ends
  int status_fd_ = -1; // the spawner writes the wait status here when it has reaped the process
  std::optional<exit_status> ended_;
};

/// Connection to one kernelmill-spawner.
/// Thread safety: any number of threads may call start().
class spawner {
public:
  /// Starts `program` (the path of kernelmill-spawner) and connects to it.
  static expected<spawner> launch(const std::string& program);

  spawner(spawner&&) noexcept;
  spawner& operator=(spawner&&) noexcept;
  ~spawner();

  /// Starts a process. An argv[0] that cannot be executed is an error here, not an exit code.
  /// Starts the spawner itself again when it has died.
  expected<child> start(const process_spec& spec);

  /// The path of kernelmill-spawner.
  const std::string& program() const noexcept;

private:
  struct state;
  explicit spawner(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
