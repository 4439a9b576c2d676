#include "gpu/referee/scheduling.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#include "gpu/process/core_use.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

constexpr int timed_nice = -10; // compilers on the same cores then hardly show

cpu_set_t original_cpus;
bool moved = false;   // `original_cpus` are known
bool settled = false; // on one core

// Field 39 of stat; the first behind the name is field 3.
int last_core(int pid) {
  auto text = stat_behind_name("/proc/" + std::to_string(pid));
  size_t at = 0; // of the blank before a field
  for (int field = 3; field < 39 && at != text.npos; ++field) at = text.find(' ', at + 1);
  return at < text.size() ? std::atoi(text.c_str() + at + 1) : -1;
}

bool settle_on(int thread, int core) {
  if (core < 0 || core >= CPU_SETSIZE) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return ::sched_setaffinity(thread, sizeof one, &one) == 0;
}

template <class F>
void for_each_thread(int pid, F act) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/task", pid);
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator{path, problem})
    act(std::atoi(entry.path().filename().c_str()));
}

} // namespace

std::vector<int> threads_of(int pid) {
  std::vector<int> result;
  for_each_thread(pid, [&](int thread) { result.push_back(thread); });
  std::sort(result.begin(), result.end());
  return result;
}

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
  for_each_thread(
      pid, [](int thread) { ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), timed_nice); });
  char path[48];
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
  if (moved) settled = settle_on(0, core);
}

void keep_beside(int pid) noexcept {
  if (!settled) run_beside(pid);
  int core = ::sched_getcpu();
  if (settled) settle_on(pid, core);
}

cpu_set_t cores_of(int pid) noexcept {
  cpu_set_t result;
  CPU_ZERO(&result);
  if (::sched_getaffinity(pid, sizeof result, &result) != 0) CPU_ZERO(&result);
  return result;
}

void let_roam(int pid, const cpu_set_t& cores) noexcept {
  if (CPU_COUNT(&cores) > 0)
    for_each_thread(pid, [&](int thread) { ::sched_setaffinity(thread, sizeof cores, &cores); });
}

cores_apart::cores_apart(const std::vector<int>& cores) noexcept {
  if (cores.size() != 2 || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  if (settle_on(0, cores[0])) timed_ = cores[1];
}

cores_apart::~cores_apart() {
  if (timed_ >= 0) ::sched_setaffinity(0, sizeof before_, &before_);
}

void cores_apart::hold(int pid) const noexcept {
  if (timed_ >= 0) settle_on(pid, timed_);
}

void run_anywhere() noexcept {
  if (moved) ::sched_setaffinity(0, sizeof original_cpus, &original_cpus);
  settled = false;
}

} // namespace kernelmill
