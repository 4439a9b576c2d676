#include "storage/files.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

error file_error(int code, const char* verb, const std::string& path) {
  auto text = std::string{"failed to "} + verb + " " + path + ": " + std::strerror(code);
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {fault_class::infrastructure, "disk_full", std::move(text),
              "free some space or raise the quota, then resume"};
    case ENOENT:
    case ENOTDIR:
      return {fault_class::configuration, "not_found", std::move(text),
              std::string_view{verb} == "create" ? "choose a path below a writable folder" : ""};
    case EROFS:
    case EACCES:
    case EPERM:
      return {fault_class::configuration, "read_only", std::move(text),
              "choose a folder that this user may write to"};
    case EIO:
      return {fault_class::infrastructure, "io_error", std::move(text),
              "see what the kernel's log (dmesg) says of this disk, then try again"};
    default: return {fault_class::infrastructure, "io_error", std::move(text), {}};
  }
}

namespace {

tl::unexpected<error> failure(const char* verb, const std::string& path) {
  return tl::unexpected<error>{file_error(errno, verb, path)};
}

std::string parent_of(const std::string& path) {
  auto parent = fs::path{path}.parent_path().string();
  return parent.empty() ? "." : parent;
}

// 64 KiB a write keeps system calls few and the buffer small.
constexpr size_t buffer_bytes = 64 << 10;

} // namespace

expected<std::string> read_file(const std::string& path) {
  auto result = read_whole(path);
  if (!result) return failure("read", path);
  return std::move(*result);
}

expected<void> sync_directory(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failure("sync", path);
  int status = ::fsync(fd);
  int code = errno;
  ::close(fd);
  // Some filesystems cannot sync a folder and say EINVAL; they need no sync either.
  if (status != 0 && code != EINVAL) return tl::unexpected<error>{file_error(code, "sync", path)};
  return {};
}

expected<void> make_directories(const std::string& path) {
  std::error_code status;
  if (fs::is_directory(path, status)) return {};
  auto parent = parent_of(path);
  if (parent != path)
    if (auto ok = make_directories(parent); !ok) return ok;
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return failure("create", path);
  if (!fs::is_directory(path, status)) {
    errno = ENOTDIR;
    return failure("create", path);
  }
  return sync_directory(parent);
}

expected<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    auto n = write_retrying(fd, bytes.data(), bytes.size());
    if (n < 0) return failure("write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

expected<void> write_file(const std::string& path, std::string_view bytes) {
  auto file = atomic_file::create(path);
  KM_TRY(file);
  if (auto ok = file->append(bytes); !ok) return ok;
  return file->commit();
}

expected<void> append_file(const std::string& path, size_t kept, std::string_view bytes) {
  bool is_new = ::access(path.c_str(), F_OK) != 0;
  descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)};
  if (!file) return failure("open", path);
  struct stat seen {};
  if (::fstat(file.get(), &seen) != 0) return failure("read", path);
  auto begin = static_cast<off_t>(kept);
  if (seen.st_size < begin)
    return infrastructure_error("io_error", "failed to write " + path + ": it became shorter",
                                "see what else writes to this file, then try again");
  if (seen.st_size > begin && ::ftruncate(file.get(), begin) != 0) return failure("write", path);
  if (::lseek(file.get(), begin, SEEK_SET) < 0) return failure("write", path);
  auto written = write_all(file.get(), bytes, path);
  if (written && ::fsync(file.get()) != 0) written = failure("sync", path);
  if (!written) {
    [[maybe_unused]] auto dropped = ::ftruncate(file.get(), begin);
    return written;
  }
  return is_new ? sync_directory(parent_of(path)) : expected<void>{};
}

// -- atomic_file --------------------------------------------------------------------------------

atomic_file::atomic_file(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {
  // nop
}

atomic_file::atomic_file(atomic_file&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)), fd_(std::exchange(other.fd_, -1)) {
  // nop
}

atomic_file& atomic_file::operator=(atomic_file&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::move(other.temporary_);
  buffer_ = std::move(other.buffer_);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

atomic_file::~atomic_file() {
  discard();
}

void atomic_file::discard() noexcept {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
  fd_ = -1;
}

expected<atomic_file> atomic_file::create(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  auto temporary =
      path + "." + std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return failure("write", path);
  return atomic_file{path, std::move(temporary), fd};
}

expected<void> atomic_file::append(std::string_view bytes) {
  buffer_.append(bytes);
  return buffer_.size() < buffer_bytes ? expected<void>{} : flush();
}

expected<void> atomic_file::flush() {
  const char* next = buffer_.data();
  size_t left = buffer_.size();
  while (left > 0) {
    auto count = ::write(fd_, next, left);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("write", path_);
    next += count;
    left -= static_cast<size_t>(count);
  }
  buffer_.clear();
  return {};
}

expected<void> atomic_file::commit(bool sync_folder) {
  if (auto ok = flush(); !ok) return ok;
  if (::fsync(fd_) != 0) return failure("sync", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failure("rename", path_);
  ::close(std::exchange(fd_, -1));
  return sync_folder ? sync_directory(parent_of(path_)) : expected<void>{};
}

} // namespace kernelmill
