#pragma once

// What tasks are timed beside, when it is a file, or the best kernel that runs have verified: found
// and built before anything starts. The referee judges it as a candidate once more.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/task/task.hpp"
#include "launch/analysis/library/kernel_library.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/backend.hpp"
#include "messages/error.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill {

/// The baseline of a word that needs nothing to be found; of the others the tasks' own, until
/// baseline_finder gives it.
timed_beside baseline_of_word(const std::string& value);

struct baseline_wish {
  std::string wanted = "eager"; ///< evaluation.baseline
  std::string kernels;          ///< evaluation.best_kernels
  std::string python;           ///< evaluation.python
  compile_section compile;
};

/// Thread safety: none.
class baseline_finder {
public:
  baseline_finder(baseline_wish wish, chosen_backend backend);
  ~baseline_finder();

  /// The task with its baseline, on its terms. Errors: "missing_file", "bad_baseline" of a file
  /// that does not build, "not_found" and others of runs, and what fails of the machine.
  expected<task_ptr> give(task_ptr what);

private:
  struct compilers;

  expected<timed_beside> file_for(const task& what);
  expected<timed_beside> best_for(const task& what);
  expected<std::string> build(const task& what, const std::string& source);
  expected<void> read_runs();
  expected<void> read_run(const std::string& path);
  bool accepts(wire::TurnRecord::Reader turn);

  baseline_wish wish_;
  chosen_backend backend_;
  std::unique_ptr<compilers> compilers_;
  std::map<std::string, timed_beside> given_; ///< by task
  bool has_read_ = false;
  library::kernels library_;                   ///< of this backend
  std::unique_ptr<artifact_store> texts_;      ///< of the run that is read
  std::map<std::string, std::string> sources_; ///< by turn id, of those that may be the best
};

} // namespace kernelmill
