#pragma once

// Benchmarks of other people, whose problems become tasks of ours: a row each. A reader takes the
// suite's files as their owner has them and gives tasks as files. What it cannot take it leaves out
// and says why, in words that can be counted.

#include <map>
#include <string>
#include <vector>

#include "messages/error.hpp"

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

struct suite_row {
  const char* name;                 ///< what the command takes: "kernelbench"
  const char* variable;             ///< of the environment, with the default path; or ""
  const char* path;                 ///< what PATH is, for the help
  std::vector<std::string> options; ///< those that it takes, besides --to and --force

  /// Reads all problems below a path. Errors: "missing_file" and "bad_problem", where nothing can
  /// be read at all.
  expected<suite_reading> (*read)(const std::string& path, const suite_options& options);
};

/// All suites, in the order of the help.
const std::vector<suite_row>& suites();

/// The row of that name, which must be one of suites().
const suite_row& suite_of(const std::string& name);

} // namespace kernelmill
