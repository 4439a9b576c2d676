#pragma once

// The OpenSSH client as a process: the user's own configuration, keys and agent, and nothing of
// them on the other side.

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launch/remote/frames.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

/// Whether `host` can be given to ssh: HOST, USER@HOST, an alias, ssh://USER@HOST:PORT. Errors:
/// "usage".
expected<void> check_host(const std::string& host);

/// The words that run `script` by sh on `host`. `client`: as $KERNELMILL_SSH has it, split at
/// blanks; empty: ssh.
std::vector<std::string> ssh_words(const std::string& client, const std::string& host,
                                   const std::string& script);

/// What it means that ssh ended with `code` and these words: "remote_denied" for what another try
/// does not change, "disk_full", "remote_unreachable" else.
error ssh_failure(const std::string& host, int code, const std::string& words);

/// One connection. Its process ends with it. Thread safety: none.
class ssh_process {
public:
  /// `wake`: becomes readable when a signal came; waits end then, with "cancelled".
  static expected<ssh_process> start(const std::string& host, const std::string& script, int wake);
  ssh_process(ssh_process&&) noexcept;
  ssh_process& operator=(ssh_process&&) noexcept;
  ~ssh_process();

  expected<void> send(std::string_view bytes);
  expected<void> send(const frame& x) { return send(encode(x)); }

  /// Takes what came; false at the end of its output. Waits at most `wait_ms`.
  expected<bool> receive(std::string& into, int wait_ms);

  void close_input() { in_.reset(); }

  /// Why it ended; waits for that.
  error failure();
  /// The exit code, after the end of its output.
  int wait();
  const std::string& words() const noexcept { return words_; } ///< its stderr so far

private:
  ssh_process() = default;
  void take_words();

  std::string host_;
  pid_t pid_ = -1;
  int code_ = -1;
  int wake_ = -1;
  descriptor in_, out_, err_; ///< ours
  std::string words_;
};

/// The error of a wait that a signal ended.
tl::unexpected<error> cancelled();

} // namespace kernelmill::remote
