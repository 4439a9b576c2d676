#pragma once

// Benchmarks of other people, whose problems become tasks of ours: a row each. A reader takes the
// suite's files as their owner has them and gives tasks as files. What it cannot take it leaves out
// and says why, in words that can be counted.

#include <string>
#include <vector>

#include "launch/import/reading/suite_reading.hpp"
#include "messages/error.hpp"

namespace kernelmill {

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
