#include "gpu/process/core_use.hpp"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "gpu/process/descriptor.hpp"

namespace kernelmill {

namespace {

// What of a stat file follows the name, which may hold anything: "1234 (name) R ...".
std::string after_name(const std::string& path) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  char text[512] = {};
  if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) return {};
  const char* end = std::strrchr(text, ')');
  return end != nullptr ? end + 1 : "";
}

double seconds_of(const std::string& stat) {
  unsigned long own[2] = {};
  long children[2] = {}; // that have ended
  if (std::sscanf(stat.c_str(), " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
                  &own[0], &own[1], &children[0], &children[1]) != 4)
    return 0;
  auto ticks =
      static_cast<double>(own[0] + own[1]) + static_cast<double>(children[0] + children[1]);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void append_children(const std::string& thread, std::vector<int>& to) {
  auto* list = std::fopen((thread + "/children").c_str(), "re");
  if (list == nullptr) return; // it has ended
  for (int child = 0; std::fscanf(list, "%d", &child) == 1;) to.push_back(child);
  std::fclose(list);
}

} // namespace

core_use core_use_of_all(int pid) {
  core_use result;
  std::vector<int> left{pid};
  while (!left.empty()) {
    auto process = "/proc/" + std::to_string(left.back());
    left.pop_back();
    result.seconds += seconds_of(after_name(process + "/stat"));
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator{process + "/task", gone}) {
      result.wants_more |= after_name(thread.path() / "stat").starts_with(" R");
      append_children(thread.path(), left);
    }
  }
  return result;
}

} // namespace kernelmill
