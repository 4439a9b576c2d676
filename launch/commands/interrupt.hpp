#pragma once

// Ctrl-C, SIGTERM, SIGHUP, and SIGUSR1 where it is wanted (Slurm's warning). The first asks, the
// second ends the process at once. A handler, not a blocked mask: processes that we start would
// inherit the mask.

#include <stop_token>
#include <string>
#include <thread>

namespace kernelmill::commands {

/// Lives once at a time; while it lives, the first signal requests a stop.
class interrupt {
public:
  explicit interrupt(bool usr1 = false);
  ~interrupt();
  interrupt(const interrupt&) = delete;
  interrupt& operator=(const interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }

  /// Waits for the first signal.
  void wait();

  /// What the second signal says on stderr as it ends the process; until the interrupt ends.
  static void say_at_second(const std::string& line);

  /// The signal that came first, or 0.
  static int signal() noexcept;

private:
  std::stop_source source_;
  int wake_[2] = {-1, -1};
  std::jthread watcher_;
};

} // namespace kernelmill::commands
