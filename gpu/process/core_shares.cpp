#include "gpu/process/core_shares.hpp"

#include <cstddef>
#include <cstring>
#include <string>

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace kernelmill {

namespace {

constexpr size_t cores_of_a_gpu = 2;

// A name in no folder, which ends with the process: nothing is left behind by one that is killed.
descriptor mark_core(int number) {
  descriptor mark{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  auto text = "kernelmill-quiet-core-" + std::to_string(number);
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (mark && ::bind(mark.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0) mark.reset();
  return mark;
}

} // namespace

core_shares share_cores(const std::vector<int>& all, size_t gpus,
                        const std::function<bool(int)>& claim) {
  core_shares result;
  result.timed.resize(gpus);
  if (gpus == 0 || all.size() < fewest_cores_a_gpu * gpus) return result;
  auto left = all;
  for (auto& cores : result.timed) {
    while (cores.size() < cores_of_a_gpu && left.size() > 1) {
      if (claim(left.back())) cores.push_back(left.back());
      left.pop_back();
    }
    if (cores.size() < cores_of_a_gpu) cores.clear();
  }
  result.compilers = left;
  return result;
}

core_shares share_cores(size_t gpus) {
  std::vector<descriptor> marks;
  auto result = share_cores(cores_of_this_process(), gpus, [&](int number) {
    auto mark = mark_core(number);
    if (!mark) return false;
    marks.push_back(std::move(mark));
    return true;
  });
  result.marks = std::move(marks);
  return result;
}

std::vector<int> cores_of_this_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> result;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) result.push_back(i);
  return result;
}

} // namespace kernelmill
