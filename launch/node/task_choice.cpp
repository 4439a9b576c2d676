#include "launch/node/task_choice.hpp"

#include <algorithm>

#include <fnmatch.h>

#include "launch/config/paths.hpp"
#include "messages/base/suggest.hpp"
#include "storage/export/split.hpp"

namespace kernelmill {

namespace {

tl::unexpected<error> no_such_task(const std::vector<std::string>& all, const std::string& id) {
  auto meant = closest(id, all);
  // "row_sum" means "native/row_sum".
  for (const auto& x : all)
    if (x.ends_with("/" + id)) meant = x;
  return configuration_error("unknown_task",
                             "failed to find the task '" + id + "': there is none of that id",
                             meant.empty() ? "`kernelmill task list` shows the ids; --root, in a "
                                             "run tasks.root, names a folder of tasks"
                                           : "did you mean '" + meant + "'?");
}

} // namespace

expected<task_ptr> choose_task(const task_roots& roots, const std::string& id) {
  auto all = list_tasks(roots);
  KM_TRY(all);
  if (std::find(all->begin(), all->end(), id) == all->end()) return no_such_task(*all, id);
  return load_task(roots, id);
}

expected<std::vector<std::string>> select_tasks(const std::vector<std::string>& all,
                                                const std::vector<std::string>& patterns) {
  std::vector<std::string> chosen;
  for (const auto& pattern : patterns) {
    bool leave_out = pattern.starts_with("!");
    auto glob = leave_out ? pattern.substr(1) : pattern;
    auto matches = [&](const std::string& id) {
      return ::fnmatch(glob.c_str(), id.c_str(), 0) == 0;
    };
    if (std::none_of(all.begin(), all.end(), matches)) return no_such_task(all, glob);
    if (leave_out) {
      std::erase_if(chosen, matches);
      continue;
    }
    for (const auto& id : all)
      if (matches(id) && std::find(chosen.begin(), chosen.end(), id) == chosen.end())
        chosen.push_back(id);
  }
  if (chosen.empty())
    return configuration_error("unknown_task",
                               "failed to choose tasks: nothing is left of tasks.ids",
                               "`kernelmill task list` shows the ids");
  return chosen;
}

expected<std::vector<task_ptr>> tasks_of(const tasks_section& section) {
  auto roots = section.root.empty() ? default_tasks_roots() : task_roots{section.root};
  auto all = list_tasks(roots);
  KM_TRY(all);
  auto chosen = select_tasks(*all, section.ids);
  KM_TRY(chosen);
  std::vector<task_ptr> result;
  for (const auto& id : *chosen) {
    auto loaded = load_task(roots, id);
    KM_TRY(loaded);
    if (section.split == "all" || exports::split_of(id, (*loaded)->split) == section.split)
      result.push_back(std::move(*loaded));
  }
  if (result.empty())
    return configuration_error("unknown_task",
                               "failed to choose tasks: none of the " +
                                   std::to_string(chosen->size()) +
                                   " of tasks.ids is of the split " + section.split,
                               "`kernelmill adapter summary SUITE` shows how many each split has");
  return result;
}

} // namespace kernelmill
