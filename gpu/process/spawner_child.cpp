#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpu/process/spawner_parts.hpp"

namespace kernelmill {

using spawn_protocol::step;

namespace {

[[noreturn]] void give_up(int report_fd, step failed, int cause) {
  child_failure x{failed, cause};
  [[maybe_unused]] auto n = ::write(report_fd, &x, sizeof x);
  ::_exit(127);
}

void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int i = 1; i < NSIG; ++i) ::sigaction(i, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

int join_cgroup(const char* directory) {
  auto path = std::string{directory} + "/cgroup.procs";
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int failed = ::write(fd, "0\n", 2) == 2 ? 0 : errno;
  ::close(fd);
  return failed;
}

int pin(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (auto x : cpus) {
    if (x < 0 || x >= CPU_SETSIZE) return EINVAL;
    CPU_SET(x, &set);
  }
  return ::sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : errno;
}

// Closes at exec whatever the request does not name.
int hide_other_descriptors(std::vector<int> keep) {
  keep.insert(keep.end(), {0, 1, 2});
  std::sort(keep.begin(), keep.end());
  unsigned from = 0;
  for (auto x : keep) {
    auto number = static_cast<unsigned>(x);
    if (number > from && ::close_range(from, number - 1, CLOSE_RANGE_CLOEXEC) != 0) return errno;
    from = std::max(from, number + 1);
  }
  return ::close_range(from, ~0u, CLOSE_RANGE_CLOEXEC) == 0 ? 0 : errno;
}

// Puts the received descriptors where the child wants them. `report_fd` moves out of the way.
int place_descriptors(const spawn_request& request, int& report_fd) {
  int above = 3;
  for (auto x : request.targets) above = std::max(above, x + 1);
  report_fd = ::fcntl(report_fd, F_DUPFD_CLOEXEC, above);
  if (report_fd < 0) return errno;
  std::vector<int> parked;
  for (auto x : request.received) {
    int fd = ::fcntl(x, F_DUPFD_CLOEXEC, above);
    if (fd < 0) return errno;
    parked.push_back(fd);
  }
  for (int i = 0; i < 3; ++i) {
    int null = ::open("/dev/null", O_RDWR);
    if (null < 0) return errno;
    if (null != i && ::dup2(null, i) < 0) return errno;
    if (null > 2) ::close(null);
  }
  for (size_t i = 0; i < parked.size(); ++i)
    if (::dup2(parked[i], request.targets[i]) < 0) return errno;
  return hide_other_descriptors(request.targets);
}

} // namespace

int stand_behind(uint64_t steps) {
  if (steps == 0) return 0;
  auto behind = static_cast<int>(std::min<uint64_t>(steps, 19));
  auto nice = std::min(19, ::getpriority(PRIO_PROCESS, 0) + behind);
  if (::setpriority(PRIO_PROCESS, 0, nice) != 0) return errno;
  char text[16];
  auto size = static_cast<size_t>(std::snprintf(text, sizeof text, "%d", nice));
  if (int fd = ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC); fd >= 0) {
    [[maybe_unused]] auto n = ::write(fd, text, size); // where there are such groups
    ::close(fd);
  }
  return 0;
}

int apply_limits(const resource_limits& limits) {
  auto set = [](__rlimit_resource_t what, uint64_t value, uint64_t grace = 0) {
    if (value == 0) return 0;
    rlimit old{};
    ::getrlimit(what, &old);
    rlimit x{std::min<rlim_t>(value, old.rlim_max), // an ordinary user cannot raise it
             std::min<rlim_t>(value + grace, old.rlim_max)};
    return ::setrlimit(what, &x) == 0 ? 0 : errno;
  };
  rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) return errno;
  for (auto failed : {set(RLIMIT_AS, limits.address_space), set(RLIMIT_FSIZE, limits.file_size),
                      set(RLIMIT_NPROC, limits.processes), set(RLIMIT_NOFILE, limits.open_files),
                      // SIGXCPU says why, a second before SIGKILL.
                      set(RLIMIT_CPU, limits.cpu_seconds, 1)})
    if (failed != 0) return failed;
  return 0;
}

void become(const spawn_request& request, int report_fd, int spawner_pid) {
  reset_signals();
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != spawner_pid) ::_exit(127); // it died before the line above
  if (int failed = place_descriptors(request, report_fd))
    give_up(report_fd, step::descriptors, failed);
  for (auto* x : request.cgroups)
    if (int failed = join_cgroup(x)) give_up(report_fd, step::cgroup, failed);
  if (!request.cpus.empty())
    if (int failed = pin(request.cpus)) give_up(report_fd, step::affinity, failed);
  if (::chdir(request.directory) != 0) give_up(report_fd, step::directory, errno);
  // Last: the limits may be too small for anything but the program.
  if (int failed = stand_behind(request.limits.nice)) give_up(report_fd, step::limits, failed);
  if (int failed = apply_limits(request.limits)) give_up(report_fd, step::limits, failed);
  ::execve(request.argv[0], request.argv.data(), request.environment.data());
  give_up(report_fd, step::exec, errno);
}

} // namespace kernelmill
