// Loaded before libc (LD_PRELOAD) it makes a disk bad: from the Nth write or sync on of files whose path
// holds a text, each fails.
//
//   KERNELMILL_BAD_DISK=ERRNO:write|sync:N:TEXT    5:write:40:/lineage/

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

struct fault {
  int code = 0;
  bool of_syncs = false;
  long first = 0;
  std::string text;
};

// Read once; a word that cannot be read is no fault, and the test that wrote it sees a run end well.
fault read_fault() {
  fault result;
  const char* words = std::getenv("KERNELMILL_BAD_DISK");
  if (words == nullptr) return result;
  std::string all = words;
  auto a = all.find(':'), b = all.find(':', a + 1), c = all.find(':', b + 1);
  if (a == all.npos || b == all.npos || c == all.npos) return result;
  result.code = std::atoi(all.c_str());
  result.of_syncs = all.substr(a + 1, b - a - 1) == "sync";
  result.first = std::atol(all.c_str() + b + 1);
  result.text = all.substr(c + 1);
  return result;
}

bool strikes(int fd, bool sync) {
  static const fault how = read_fault();
  static std::atomic<long> count{0};
  if (how.code == 0 || how.of_syncs != sync) return false;
  char path[4096];
  auto link = "/proc/self/fd/" + std::to_string(fd);
  auto size = ::readlink(link.c_str(), path, sizeof path - 1);
  if (size <= 0) return false;
  path[size] = '\0';
  if (std::strstr(path, how.text.c_str()) == nullptr || ++count < how.first) return false;
  errno = how.code;
  return true;
}

} // namespace

extern "C" {

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return strikes(fd, false) ? -1 : ::syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return strikes(fd, false) ? -1 : ::syscall(SYS_write, fd, bytes, size);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  return strikes(fd, false) ? -1 : ::syscall(SYS_writev, fd, parts, count);
}

int fdatasync(int fd) {
  return strikes(fd, true) ? -1 : static_cast<int>(::syscall(SYS_fdatasync, fd));
}

int fsync(int fd) {
  return strikes(fd, true) ? -1 : static_cast<int>(::syscall(SYS_fsync, fd));
}
}
