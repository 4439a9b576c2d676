#include "gpu/referee/scheduling.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#include "gpu/process/descriptor.hpp"

namespace kernelmill {

namespace {

constexpr int timed_nice = -10; // compilers on the same cores then hardly show

cpu_set_t original_cpus;
bool moved = false;

// Field 39 of stat; the name in field 2 may hold blanks, so count from ')'.
int last_core(int pid) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  char text[1024] = {};
  if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) return -1;
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 39; ++field) at = std::strchr(at + 1, ' ');
  return at != nullptr ? std::atoi(at + 1) : -1;
}

} // namespace

double waited_seconds(int pid) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
  descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  char text[64] = {};
  if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) return 0;
  char* second = nullptr; // running, waiting, slices; in nanoseconds
  (void)std::strtoull(text, &second, 10);
  return static_cast<double>(std::strtoull(second, nullptr, 10)) * 1e-9;
}

bool wants_core(int pid) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/task", pid);
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator{path, problem}) {
    descriptor file{::open((entry.path() / "stat").c_str(), O_RDONLY | O_CLOEXEC)};
    char text[128] = {};
    if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) continue;
    const char* end = std::strrchr(text, ')'); // "1234 (name) R ..."
    if (end != nullptr && end[1] == ' ' && end[2] == 'R') return true;
  }
  return false;
}

void raise_priority(int pid) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/task", pid);
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator{path, problem})
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(std::atoi(entry.path().filename().c_str())),
                  timed_nice);
  // Every sandbox is a session, and with autogroups the sessions share the machine first; what is
  // nice within one hardly counts.
  std::snprintf(path, sizeof path, "/proc/%d/autogroup", pid);
  descriptor group{::open(path, O_WRONLY | O_CLOEXEC)};
  auto text = std::to_string(timed_nice);
  if (group) (void)write_retrying(group.get(), text.data(), text.size());
}

void run_beside(int pid) noexcept {
  int core = last_core(pid);
  if (core < 0 || core >= CPU_SETSIZE) return;
  if (!moved) moved = ::sched_getaffinity(0, sizeof original_cpus, &original_cpus) == 0;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (moved) ::sched_setaffinity(0, sizeof one, &one);
}

void run_anywhere() noexcept {
  if (moved) ::sched_setaffinity(0, sizeof original_cpus, &original_cpus);
}

} // namespace kernelmill
