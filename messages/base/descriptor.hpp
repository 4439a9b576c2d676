#pragma once

// File descriptors as values with one owner, and the waits that system calls interrupt.

#include <cstddef>
#include <utility>

#include <sys/types.h>

namespace kernelmill {

/// Owns one file descriptor.
class descriptor {
public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() { reset(); }

  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;
  explicit operator bool() const noexcept { return fd_ >= 0; }

private:
  int fd_ = -1;
};

struct pipe_ends {
  descriptor read;
  descriptor write;
};

/// Makes a close-on-exec pipe; both ends are empty when the process has no descriptor left.
pipe_ends make_pipe();

/// Waits until `fd` is readable or at its end; false at the deadline. Below 0 waits for ever.
bool wait_readable(int fd, int deadline_ms);

/// read(2) and write(2) that go on after a signal.
ssize_t read_retrying(int fd, void* bytes, size_t size);
ssize_t write_retrying(int fd, const void* bytes, size_t size);

} // namespace kernelmill
