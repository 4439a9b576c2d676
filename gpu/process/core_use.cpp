#include "gpu/process/core_use.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

std::string folder_of(int pid) {
  return "/proc/" + std::to_string(pid);
}

// The folders of its threads; none when it is gone.
std::filesystem::directory_iterator threads_of(int pid) {
  std::error_code gone;
  return std::filesystem::directory_iterator{folder_of(pid) + "/task", gone};
}

// Of a small file of the kernel's; empty when it is not there.
std::string text_of(const std::string& path) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string result(4096, '\0');
  auto count = file ? read_retrying(file.get(), result.data(), result.size()) : 0;
  result.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return result;
}

void append_children(const std::string& thread, std::vector<int>& to) {
  auto* list = std::fopen((thread + "/children").c_str(), "re");
  if (list == nullptr) return; // it has ended
  for (int child = 0; std::fscanf(list, "%d", &child) == 1;) to.push_back(child);
  std::fclose(list);
}

} // namespace

std::string stat_behind_name(const std::string& folder) {
  descriptor file{::open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC)};
  char text[1024] = {};
  if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) return {};
  const char* end = std::strrchr(text, ')');
  return end != nullptr ? end + 1 : "";
}

// Fields 14 to 17 of stat.
processor_times processor_times_of(int pid) {
  unsigned long user = 0;
  unsigned long system = 0;
  long children[2] = {};
  std::sscanf(stat_behind_name(folder_of(pid)).c_str(),
              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &user, &system,
              &children[0], &children[1]);
  auto tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {static_cast<double>(user) / tick, static_cast<double>(system) / tick,
          static_cast<double>(children[0] + children[1]) / tick};
}

std::string thread_states(int pid) {
  std::string result;
  for (const auto& thread : threads_of(pid)) {
    auto text = stat_behind_name(thread.path());
    if (text.size() > 1) result += text[1];
  }
  return result;
}

int parent_of(int pid) {
  int result = 0;
  std::sscanf(stat_behind_name(folder_of(pid)).c_str(), " %*c %d", &result);
  return result;
}

std::vector<int> descendants_of(int pid) {
  std::vector<int> result;
  for (size_t next = 0; pid != 0; pid = next < result.size() ? result[next++] : 0)
    for (const auto& thread : threads_of(pid)) append_children(thread.path(), result);
  return result;
}

bool wants_core(int pid) {
  return thread_states(pid).find('R') != std::string::npos;
}

double seconds_without_core(int pid) {
  descriptor file{::open((folder_of(pid) + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC)};
  char text[128] = {};
  if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) return 0;
  unsigned long long waited = 0; // ns, behind those on a core
  std::sscanf(text, "%*u %llu", &waited);
  return static_cast<double>(waited) * 1e-9;
}

bool is_stopped(int pid) {
  auto text = stat_behind_name(folder_of(pid));
  return text.size() > 1 && text[1] == 'T';
}

// Version 1 tells it of the freezer's group, version 2 of each; both count the groups around it.
bool is_frozen(int pid) {
  auto groups = text_of(folder_of(pid) + "/cgroup");
  for (size_t at = 0; at < groups.size();) {
    auto end = std::min(groups.find('\n', at), groups.size());
    auto line = groups.substr(at, end - at);
    at = end + 1;
    auto path = line.substr(std::min(line.find('/'), line.size()));
    if (line.starts_with("0::")) {
      for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        if (text_of(root + path + "/cgroup.events").find("frozen 1") != std::string::npos)
          return true;
    } else if (line.find(":freezer:") != std::string::npos) {
      auto state = text_of("/sys/fs/cgroup/freezer" + path + "/freezer.state");
      if (state.starts_with("FROZEN")) return true; // FREEZING: some still run
    }
  }
  return false;
}

core_use core_use_of_all(int pid) {
  core_use result;
  result.stopped = is_frozen(pid);
  auto all = descendants_of(pid);
  all.insert(all.begin(), pid);
  for (int next : all) {
    auto times = processor_times_of(next);
    result.seconds += times.user + times.system + times.ended_children;
    result.wants_more = result.wants_more || wants_core(next);
    result.stopped = result.stopped || is_stopped(next);
  }
  return result;
}

} // namespace kernelmill
