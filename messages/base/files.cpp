#include "messages/base/files.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

std::string read_part(int fd, size_t most, bool last) {
  struct stat x {};
  if (::fstat(fd, &x) != 0 || x.st_size <= 0) return {};
  auto size = static_cast<size_t>(x.st_size);
  std::string result(std::min(size, most), '\0');
  auto from = static_cast<off_t>(last ? size - result.size() : 0);
  auto n = ::pread(fd, result.data(), result.size(), from);
  result.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return result;
}

} // namespace

std::string read_first(int fd, size_t most) {
  return read_part(fd, most, false);
}

std::string read_last(int fd, size_t most) {
  return read_part(fd, most, true);
}

std::optional<std::string> read_whole(int fd) {
  struct stat x {};
  if (::fstat(fd, &x) != 0 || x.st_size < 0) return {};
  std::string result(static_cast<size_t>(x.st_size), '\0');
  for (size_t done = 0; done < result.size();) {
    auto n = ::pread(fd, result.data() + done, result.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    done += static_cast<size_t>(n);
  }
  return result;
}

std::optional<std::string> read_whole(const std::string& path) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return {};
  // To its end, not to its size: what the kernel makes up as it is read has none before.
  std::string result;
  struct stat facts {};
  if (::fstat(file.get(), &facts) == 0 && facts.st_size > 0)
    result.reserve(static_cast<size_t>(facts.st_size));
  char part[16384];
  for (ssize_t n; (n = read_retrying(file.get(), part, sizeof part)) != 0;) {
    if (n < 0) return {};
    result.append(part, static_cast<size_t>(n));
  }
  return result;
}

} // namespace kernelmill
