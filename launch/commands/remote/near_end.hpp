#pragma once

// What a session needs of this process: signals as a descriptor, stdout and stderr as they are.

#include <csignal>
#include <string>

#include "launch/remote/near_session.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill::commands {

/// While it lives, Ctrl-C, SIGTERM and SIGHUP are the session's, and what this program would make
/// of its own output is off. Lives once at a time.
class near_end {
public:
  near_end();
  ~near_end();
  near_end(const near_end&) = delete;
  near_end& operator=(const near_end&) = delete;

  remote::near_options options(const std::string& host);

  bool reader_gone() const noexcept { return reader_gone_; } ///< of stdout

private:
  int take_signal();
  void print(int stream, std::string_view bytes);

  descriptor signals_;
  sigset_t before_{};
  bool reader_gone_ = false;
};

} // namespace kernelmill::commands
