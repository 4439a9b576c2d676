#pragma once

#include <string>
#include <vector>

#include "gpu/task/task.hpp"
#include "launch/config/run_config.hpp"

namespace kernelmill {

/// Loads a task; an unknown id has category "unknown_task" and names the closest one.
expected<task_ptr> choose_task(const task_roots& roots, const std::string& id);

/// Expands ids and globs in order, "!ID" leaving out; a pattern that matches nothing is an error.
expected<std::vector<std::string>> select_tasks(const std::vector<std::string>& all,
                                                const std::vector<std::string>& patterns);

/// The tasks of a run's section: its ids, less those of another split.
expected<std::vector<task_ptr>> tasks_of(const tasks_section& section);

} // namespace kernelmill
