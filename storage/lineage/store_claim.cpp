#include "storage/lineage/store_claim.hpp"

#include <cerrno>
#include <mutex>
#include <set>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "storage/disk.hpp"
#include "storage/files.hpp"
#include "storage/lineage/store_failure.hpp"

namespace kernelmill {

namespace {

// POSIX drops all of a process's locks on a file when any descriptor of it is closed, so LMDB
// breaks when one process opens an environment twice. This remembers what is open.
struct open_environments {
  std::mutex mutex;
  std::set<std::pair<uint64_t, uint64_t>> identities;
};

open_environments& opened() {
  static open_environments instance;
  return instance;
}

} // namespace

store_claim::~store_claim() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
  if (!claimed_) return;
  std::scoped_lock lock{opened().mutex};
  opened().identities.erase(identity_);
}

expected<void> store_claim::take(const store_options& options) {
  KM_TRY(claim(options));
  return lock(options);
}

// Sees that the folder is on this machine, holds a store where one must be, and is not open here.
expected<void> store_claim::claim(const store_options& options) {
  struct stat facts {};
  struct statfs filesystem {};
  const auto& where = options.directory;
  if (::stat(where.c_str(), &facts) != 0 || ::statfs(where.c_str(), &filesystem) != 0)
    return tl::unexpected(store_failure(errno, "open", where));
  if (options.read_only) {
    struct stat data {};
    bool there = ::stat((where + "/data.mdb").c_str(), &data) == 0;
    if (!there && errno != ENOENT) return tl::unexpected(store_failure(errno, "open", where));
    if (!there || data.st_size == 0)
      return configuration_error("not_found",
                                 "failed to open the store " + where + ": its data.mdb " +
                                     (there ? "has 0 bytes" : "is not there"),
                                 "`kernelmill resume RUN` begins a run that was ended before it "
                                 "had records");
  }
  if (is_remote_filesystem(static_cast<unsigned long>(filesystem.f_type)))
    return configuration_error("store_remote_filesystem",
                               "failed to open the store " + where +
                                   ": it lies on a network or FUSE filesystem, where memory maps "
                                   "and locks cannot be trusted",
                               "put the run on a local disk (run.dir=PATH or storage.store=PATH)");
  identity_ = {facts.st_dev, facts.st_ino};
  std::scoped_lock lock{opened().mutex};
  claimed_ = opened().identities.insert(identity_).second;
  if (!claimed_)
    return configuration_error(
        "store_locked", "failed to open the store " + where + ": this process has it open already",
        "share the store object");
  return {};
}

bool store_claim::is_there() const {
  struct stat about {};
  return lock_fd_ < 0 || ::fstat(lock_fd_, &about) != 0 || about.st_nlink > 0;
}

// flock() goes with the process, also on kill -9. A reader that may not write the folder has no
// entry in LMDB's reader table, so it keeps writers out instead.
expected<void> store_claim::lock(const store_options& options) {
  auto path = options.directory + "/writer.lock";
  bool seated = ::access(options.directory.c_str(), W_OK) == 0;
  if (options.read_only && seated) return {};
  int flags = options.read_only ? O_RDONLY : O_RDWR | O_CREAT;
  lock_fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (lock_fd_ < 0) {
    if (options.read_only && errno == ENOENT) return {};
    return tl::unexpected(store_failure(errno, "open", options.directory));
  }
  if (::flock(lock_fd_, (options.read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    auto holder = read_file(path).value_or("");
    return configuration_error(
        "store_locked",
        "failed to open the store " + options.directory + ": process " +
            (holder.empty() ? "of unknown id" : holder.substr(0, holder.find('\n'))) + " writes it",
        "wait for it or end it; `kernelmill ps` lists runs in progress");
  }
  if (options.read_only) return {};
  // For people and messages only: a full disk may leave it empty.
  auto pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock_fd_, 0) == 0) [[maybe_unused]]
    auto count = ::pwrite(lock_fd_, pid.data(), pid.size(), 0);
  return {};
}

} // namespace kernelmill
