#include "messages/base/descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace kernelmill {

void descriptor::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

pipe_ends make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  return {descriptor{ends[0]}, descriptor{ends[1]}};
}

bool wait_readable(int fd, int deadline_ms) {
  using clock = std::chrono::steady_clock;
  auto end = clock::now() + std::chrono::milliseconds{deadline_ms};
  for (;;) {
    int left = -1;
    if (deadline_ms >= 0) {
      auto ms = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
      left = static_cast<int>(std::max<long>(ms, 0));
    }
    pollfd x{fd, POLLIN, 0};
    int n = ::poll(&x, 1, left);
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

ssize_t read_retrying(int fd, void* bytes, size_t size) {
  for (;;) {
    auto n = ::read(fd, bytes, size);
    if (n >= 0 || errno != EINTR) return n;
  }
}

ssize_t write_retrying(int fd, const void* bytes, size_t size) {
  for (;;) {
    auto n = ::write(fd, bytes, size);
    if (n >= 0 || errno != EINTR) return n;
  }
}

} // namespace kernelmill
