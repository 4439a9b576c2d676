#include "gpu/process/machine_turn.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kernelmill {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds look_every{2};
constexpr milliseconds polite{10}; // several looks of those who wait

// In memory, of this user alone: a folder that another user made under this name is not used.
descriptor lock_folder() {
  auto path = "/dev/shm/kernelmill-turns-" + std::to_string(::geteuid());
  ::mkdir(path.c_str(), 0700);
  descriptor folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat found {};
  if (folder && (::fstat(folder.get(), &found) != 0 || found.st_uid != ::geteuid())) folder.reset();
  return folder;
}

descriptor open_lock(const descriptor& folder, const std::string& name) {
  return descriptor{
      ::openat(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
}

// True where it is locked, and where it cannot be: then nothing is worth waiting for.
bool lock_by(const descriptor& file, const std::stop_token& stop, steady_clock::time_point until) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (stop.stop_requested() || steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(look_every);
  }
  return true;
}

// Who waits shares a second file, by which the holder knows that it is not alone.
bool others_wait(const descriptor& queue) {
  bool is_shared = ::flock(queue.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::flock(queue.get(), LOCK_UN);
  return is_shared;
}

} // namespace

machine_turn machine_turn::wait_for(std::vector<std::string> names, milliseconds patience,
                                    const std::stop_token& stop) {
  machine_turn result;
  auto folder = lock_folder();
  if (!folder) return result;
  auto until = steady_clock::now() + patience;
  std::sort(names.begin(), names.end()); // in one order, so that none waits for one who waits
  for (const auto& name : names) {
    auto file = open_lock(folder, name);
    auto queue = open_lock(folder, name + ".waiting");
    if (!file || !queue) return {};
    if (others_wait(queue)) std::this_thread::sleep_for(polite);
    ::flock(queue.get(), LOCK_SH | LOCK_NB);
    if (!lock_by(file, stop, until)) return {};
    result.locks_.push_back(std::move(file));
  }
  result.holds_ = true;
  return result;
}

} // namespace kernelmill
