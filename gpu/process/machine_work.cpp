#include "gpu/process/machine_work.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

namespace kernelmill {

std::optional<machine_work> machine_work_now() {
  std::ifstream in{"/proc/stat"};
  std::string first;
  std::getline(in, first);
  return machine_work_in(first);
}

std::optional<machine_work> machine_work_in(const std::string& stat) {
  std::istringstream in{stat};
  std::string name;
  // user, which has guests; nice, system, idle, iowait, irq, softirq, steal
  std::array<double, 8> ticks{};
  in >> name;
  for (auto& x : ticks) in >> x;
  if (!in || name != "cpu") return std::nullopt;
  auto second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return machine_work{(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / second,
                      ticks[7] / second};
}

double stolen_percent(const std::optional<machine_work>& from,
                      const std::optional<machine_work>& until) {
  if (!from || !until) return 0;
  double stolen = until->stolen - from->stolen;
  double wanted = until->worked - from->worked + stolen;
  return stolen > 0 && wanted > 0 ? 100 * stolen / wanted : 0;
}

} // namespace kernelmill
