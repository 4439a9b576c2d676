#include "gpu/process/core_use.hpp"

#include <cstdio>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "gpu/process/descriptor.hpp"

namespace kernelmill {

namespace {

void add(int pid, core_use& into) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  char text[512] = {};
  if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) return;
  const char* end = std::strrchr(text, ')'); // "1234 (name) R ...", and a name may hold anything
  char state = 0;
  unsigned long own[2] = {};
  long children[2] = {}; // that have ended
  if (end == nullptr ||
      std::sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &state,
                  &own[0], &own[1], &children[0], &children[1]) != 5)
    return;
  auto ticks =
      static_cast<double>(own[0] + own[1]) + static_cast<double>(children[0] + children[1]);
  into.seconds += ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  into.wants_more = into.wants_more || state == 'R' || state == 'D';
}

} // namespace

core_use core_use_of_all(int pid) noexcept {
  core_use result;
  std::vector<int> left{pid};
  while (!left.empty()) {
    int parent = left.back();
    left.pop_back();
    add(parent, result);
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    auto* list = std::fopen(path, "re");
    if (list == nullptr) continue; // it has ended
    for (int child = 0; std::fscanf(list, "%d", &child) == 1;) left.push_back(child);
    std::fclose(list);
  }
  return result;
}

} // namespace kernelmill
