#include "gpu/process/core_use.hpp"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "gpu/process/descriptor.hpp"

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

bool wants_core(int pid) {
  for (const auto& thread : threads_of(pid))
    if (stat_behind_name(thread.path()).starts_with(" R")) return true;
  return false;
}

core_use core_use_of_all(int pid) {
  core_use result;
  std::vector<int> left{pid};
  while (!left.empty()) {
    int next = left.back();
    left.pop_back();
    auto times = processor_times_of(next);
    result.seconds += times.user + times.system + times.ended_children;
    result.wants_more = result.wants_more || wants_core(next);
    for (const auto& thread : threads_of(next)) append_children(thread.path(), left);
  }
  return result;
}

} // namespace kernelmill
