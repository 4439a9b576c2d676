// Loaded before libc (LD_PRELOAD) it lets the time of day jump: by the seconds that the first eight
// bytes of a file say, from one call to the next. The clock that only counts, CLOCK_MONOTONIC,
// stays as it is, as when a user or a time server sets a machine's clock.
//
//   KERNELMILL_BAD_CLOCK=FILE    eight bytes, a little-endian int64_t

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

// A file that cannot be read is no fault, and the test sees no time that jumped.
const std::atomic<int64_t>* map_offset() {
  static const std::atomic<int64_t> none{0};
  const char* path = std::getenv("KERNELMILL_BAD_CLOCK");
  if (path == nullptr) return &none;
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  void* page = fd < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0) ::close(fd);
  return page == MAP_FAILED ? &none : static_cast<const std::atomic<int64_t>*>(page);
}

int64_t offset() {
  static const std::atomic<int64_t>* const seconds = map_offset();
  return seconds->load(std::memory_order_relaxed);
}

} // namespace

extern "C" {

int clock_gettime(clockid_t which, timespec* x) noexcept {
  auto status = static_cast<int>(::syscall(SYS_clock_gettime, which, x));
  if (status == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    x->tv_sec += offset();
  return status;
}

int gettimeofday(timeval* x, void* zone) noexcept {
  auto status = static_cast<int>(::syscall(SYS_gettimeofday, x, zone));
  if (status == 0) x->tv_sec += offset();
  return status;
}

time_t time(time_t* x) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (x != nullptr) *x = now.tv_sec;
  return now.tv_sec;
}
}
