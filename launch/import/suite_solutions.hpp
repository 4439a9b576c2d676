#pragma once

// Answers in the forms of other harnesses, as candidates of imported tasks, and our verdicts in the
// form of their results. A suite is one row: `judge --suite NAME` takes any of them.

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gpu/task/task.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// One answer of a suite's file or folder.
struct suite_candidate {
  std::string task; ///< id of the imported task
  std::string name; ///< of its verdict's line; unique in the file
  std::string source;
  std::string contract = "auto";
  std::string record;  ///< what the suite's own results repeat of it, as JSON; may be empty
  std::string refused; ///< why no candidate can be made of it; it is counted and not judged
};

/// Where the tasks of answers are looked for.
struct solution_place {
  task_roots roots;
  std::string release; ///< of the suite, where it has releases; empty: the file's, or the newest
};

/// One answer with what became of it.
struct graded_candidate {
  const suite_candidate* what = nullptr;
  std::string folder;                    ///< of its task
  const nlohmann::ordered_json* verdict; ///< as `judge` prints it; nullptr of a refused one
  std::string build_log;
};

struct suite_solutions {
  const char* name;
  const char* reads; ///< for the help: what PATH is
  /// Errors: "missing_file", "bad_batch" naming file and line.
  expected<std::vector<suite_candidate>> (*read)(const std::string& path,
                                                 const solution_place& where);
  /// Name of the file of results in PATH's folder, written without being asked for; nullptr: none.
  const char* results_file;
  /// The text of the suite's own file of results.
  expected<std::string> (*results)(const std::string& path,
                                   std::span<const graded_candidate> graded);
};

std::span<const suite_solutions> all_suite_solutions();

/// Returns the row of that name, or nullptr.
const suite_solutions* find_suite_solutions(const std::string& name);

/// ComputeEval: solutions.jsonl or a *-solutions.tar.gz.
expected<std::vector<suite_candidate>> read_compute_eval_solutions(const std::string& path,
                                                                   const solution_place& where);
expected<std::string> compute_eval_results(const std::string& path,
                                           std::span<const graded_candidate> graded);

/// SOL-ExecBench and flashinfer-trace: a solution in JSON, or a folder of them. A solution whose
/// definition was not imported is passed over, unless none was.
expected<std::vector<suite_candidate>> read_sol_solutions(const std::string& path,
                                                          const solution_place& where);
expected<std::string> sol_results(const std::string& path,
                                  std::span<const graded_candidate> graded);

} // namespace kernelmill
