#include "launch/commands/tasks_root.hpp"

#include <filesystem>

#include "launch/config/paths.hpp"

namespace kernelmill::commands {

expected<task_roots> tasks_roots(const cli::invocation& in) {
  auto roots = in.has("--root") ? task_roots{in.value("--root")} : default_tasks_roots();
  std::error_code code;
  if (roots.empty() || !std::filesystem::is_directory(roots.front(), code))
    return configuration_error(
        "not_found",
        "failed to find the tasks: " +
            (roots.empty() ? "there is no configs/ folder" : "no such folder: " + roots.front()),
        "give --root DIR, or set KERNELMILL_HOME to the folder that holds configs/");
  for (auto& root : roots) root = std::filesystem::absolute(root, code).lexically_normal().string();
  return roots;
}

} // namespace kernelmill::commands
