#pragma once

// What a reader makes of a suite's files: tasks as files, and what it left out.

#include <map>
#include <string>
#include <vector>

namespace kernelmill {

/// A file of a task's folder. `name` has no folder in it, or one of those that a task may have:
/// "tests/check.cu".
struct task_file {
  std::string name;
  std::string text;
};

struct suite_task {
  std::string id; ///< "kernelbench/level1/19_ReLU"
  std::vector<task_file> files;
  std::string note = {}; ///< for people, such as "97 % of the time"; or empty
};

/// A problem, or a part of one, that was left out.
struct suite_refusal {
  std::string place;  ///< "L1/softmax", or a file and a line
  std::string reason; ///< the same words for all of a kind: "no workloads"
  std::string cause;  ///< one sentence, for people
};

struct suite_reading {
  std::vector<suite_task> tasks;
  std::vector<suite_refusal> refused;
};

/// Options of the command that were given, with their values: {"--level", "1"}.
using suite_options = std::map<std::string, std::string>;

} // namespace kernelmill
