#include "launch/analysis/library/staleness.hpp"

#include <fmt/format.h>

#include "messages/base/json_value.hpp"

namespace kernelmill::library {

namespace {

void compare_versions(staleness& to, const std::string& what, const std::string& then,
                      const std::string& now) {
  if (then == now) return;
  if (then.empty() || now.empty())
    to.not_compared.push_back(
        then.empty() ? what + ": the run's manifest does not say"
                     : fmt::format("{}: {} then, none found on this machine", what, then));
  else
    to.reasons.push_back(fmt::format("{}: {} then, {} now", what, then, now));
}

void compare_machine(staleness& to, const kernel& x, const conditions_today& today) {
  bool is_here = !today.hardware.empty() && x.device.starts_with(today.hardware);
  if (!is_here) {
    to.not_compared.push_back("driver and compiler: this machine has no " + x.device);
    return;
  }
  if (x.backend != "cpu") compare_versions(to, "driver", x.driver, today.driver);
  for (const auto& [name, then] : x.versions) {
    auto now = today.versions.find(name);
    compare_versions(to, name, then, now == today.versions.end() ? std::string{} : now->second);
  }
}

} // namespace

staleness staleness_of(const kernel& x, const conditions_today& today) {
  staleness result;
  auto task = today.tasks.find(x.task);
  if (task == today.tasks.end())
    result.not_compared.push_back("task: " + x.task + " is not installed");
  else if (!x.task_digest.empty() && task->second != x.task_digest)
    result.reasons.push_back("task: its files have changed");
  compare_versions(result, "kernelmill", x.program, today.program);
  compare_machine(result, x, today);
  if (result.is_stale()) result.next = "kernelmill replay " + x.place();
  return result;
}

void add_staleness(nlohmann::ordered_json& to, const staleness& x) {
  to["stale"] = x.is_stale();
  to["stale_reasons"] = x.reasons;
  to["not_compared"] = x.not_compared;
  to["next"] = x.next;
}

} // namespace kernelmill::library
