#include "tests/fault/disk_calls.hpp"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace kernelmill::disk_calls {

namespace {

std::atomic<bool> recording{false};
std::mutex mutex;
std::string root;
std::vector<call> calls;

bool below_root(const std::string& path) { return path.starts_with(root + "/") || path == root; }

std::string inside(const std::string& path) { return path.substr(std::min(path.size(), root.size())); }

std::string path_of(int fd) {
  char target[4096];
  auto link = "/proc/self/fd/" + std::to_string(fd);
  auto size = ::readlink(link.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : std::string{};
}

struct stat facts_of(int fd) {
  struct stat facts {};
  ::fstat(fd, &facts);
  return facts;
}

void add(call x) {
  std::scoped_lock lock{mutex};
  calls.push_back(std::move(x));
}

// Before the write itself: what it may leave after a power cut includes nothing of it.
void tell_write(int fd, const void* bytes, size_t size, uint64_t offset) {
  if (!recording || !below_root(path_of(fd))) return;
  auto file = facts_of(fd).st_ino;
  add({kind::write, file, {}, offset, {static_cast<const char*>(bytes), size}});
  if ((::fcntl(fd, F_GETFL) & (O_DSYNC | O_SYNC)) != 0) add({kind::sync, file, {}, 0, {}});
}

void tell_sync(int fd) {
  if (!recording || !below_root(path_of(fd))) return;
  auto facts = facts_of(fd);
  if (S_ISDIR(facts.st_mode))
    add({kind::sync_directory, 0, inside(path_of(fd)), 0, {}});
  else
    add({kind::sync, facts.st_ino, {}, 0, {}});
}

uint64_t position(int fd) {
  if ((::fcntl(fd, F_GETFL) & O_APPEND) != 0) return static_cast<uint64_t>(facts_of(fd).st_size);
  return static_cast<uint64_t>(::lseek(fd, 0, SEEK_CUR));
}

void tell_name(const char* path) {
  struct stat facts {};
  if (recording && below_root(path) && ::stat(path, &facts) == 0)
    add({kind::link, facts.st_ino, inside(path), 0, {}});
}

} // namespace

void record(const std::string& folder) {
  root = folder;
  calls.clear();
  recording = true;
}

void say(uint64_t mark) {
  call x;
  x.mark = mark;
  if (recording) add(std::move(x));
}

std::vector<call> stop() {
  recording = false;
  return std::move(calls);
}

} // namespace kernelmill::disk_calls

// -- what libc exports, with the same meaning --------------------------------------------------------

using namespace kernelmill::disk_calls;

extern "C" {

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  tell_write(fd, bytes, size, static_cast<uint64_t>(offset));
  return ::syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (recording) tell_write(fd, bytes, size, position(fd));
  return ::syscall(SYS_write, fd, bytes, size);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  auto offset = recording ? position(fd) : 0;
  for (int i = 0; recording && i < count; offset += parts[i++].iov_len)
    tell_write(fd, parts[i].iov_base, parts[i].iov_len, offset);
  return ::syscall(SYS_writev, fd, parts, count);
}

int fdatasync(int fd) {
  tell_sync(fd);
  return recording ? 0 : static_cast<int>(::syscall(SYS_fdatasync, fd));
}

int fsync(int fd) {
  tell_sync(fd);
  return recording ? 0 : static_cast<int>(::syscall(SYS_fsync, fd));
}

int ftruncate(int fd, off_t size) noexcept {
  if (recording && below_root(path_of(fd)))
    add({kind::cut, facts_of(fd).st_ino, {}, static_cast<uint64_t>(size), {}});
  return static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  bool fresh = recording && (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (fd >= 0 && fresh) tell_name(path);
  return fd;
}

int rename(const char* from, const char* to) noexcept {
  auto status = static_cast<int>(::syscall(SYS_rename, from, to));
  if (status == 0 && recording && below_root(to)) {
    tell_name(to);
    add({kind::unlink, 0, inside(from), 0, {}});
  }
  return status;
}

int unlink(const char* path) noexcept {
  if (recording && below_root(path)) add({kind::unlink, 0, inside(path), 0, {}});
  return static_cast<int>(::syscall(SYS_unlink, path));
}

int mkdir(const char* path, mode_t mode) noexcept {
  auto status = static_cast<int>(::syscall(SYS_mkdir, path, mode));
  if (status == 0) tell_name(path);
  return status;
}
}
