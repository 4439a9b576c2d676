#include "gpu/referee/scheduling.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/resource.h>

#include "gpu/process/descriptor.hpp"

namespace kernelmill {

namespace {

constexpr int timed_nice = -10; // compilers on the same cores then hardly show

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

} // namespace kernelmill
