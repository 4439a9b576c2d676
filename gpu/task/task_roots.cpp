// Several folders of tasks: those that are shipped, and those that a user imported.

#include <algorithm>
#include <filesystem>
#include <set>

#include "gpu/task/task.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

expected<task_ptr> load_task(const task_roots& roots, const std::string& id) {
  if (roots.empty()) return load_task(std::string{}, id);
  for (const auto& root : roots) {
    std::error_code ignored;
    if (fs::exists(fs::path{root} / id / "task.json", ignored)) return load_task(root, id);
  }
  return load_task(roots.front(), id); // which says that there is none
}

expected<std::vector<std::string>> list_tasks(const task_roots& roots) {
  std::set<std::string> all;
  for (const auto& root : roots) {
    std::error_code ignored;
    if (roots.size() > 1 && !fs::exists(root, ignored)) continue;
    auto ids = list_tasks(root);
    if (!ids) return ids;
    all.insert(ids->begin(), ids->end());
  }
  return std::vector<std::string>(all.begin(), all.end());
}

} // namespace kernelmill
