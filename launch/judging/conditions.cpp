#include "launch/judging/conditions.hpp"

#include "launch/machine/fingerprint.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

library::conditions_today conditions_of(const chosen_backend& backend, const std::string& toolchain,
                                        const std::string& python, const std::string& program,
                                        std::map<std::string, std::string> tasks) {
  library::conditions_today result;
  result.program = program;
  result.tasks = std::move(tasks);
  result.hardware = hardware_text(backend);
  result.hardware = result.hardware.substr(0, result.hardware.find(" (sm_"));
  auto now = machine_fingerprint(backend, toolchain, python);
  if (const auto& driver = now["driver_version"]; driver.is_string())
    result.driver = driver.get<std::string>();
  for (const auto& [name, version] : now["tool_versions"].items())
    if (version.is_string()) result.versions[name] = version.get<std::string>();
  return result;
}

std::map<std::string, std::string> digests_of_tasks(const task_roots& roots,
                                                    const std::vector<library::kernel>& of) {
  std::map<std::string, std::string> result;
  for (const auto& x : of)
    if (!result.contains(x.task))
      if (auto loaded = load_task(roots, x.task)) result.emplace(x.task, (*loaded)->digest);
  return result;
}

} // namespace kernelmill
