#pragma once

// `judge --suite NAME`: answers in the form of another harness, and its form of results.

#include <string>
#include <vector>

#include "launch/commands/commands.hpp"
#include "launch/import/suite_solutions.hpp"
#include "messages/base/json_value.hpp"
#include "messages/build.capnp.h"

namespace kernelmill::commands {

class suite_batch {
public:
  /// Reads BATCH by --suite; without that option no answer is given. Errors: those of the suite's
  /// reader; "usage" for --graded or --release without --suite.
  static expected<suite_batch> read(const invocation& in, const task_roots& roots);

  bool is_given() const { return suite_ != nullptr; }
  const std::vector<suite_candidate>& all() const { return answers_; }

  /// Leaves out an answer that cannot be judged here, and says why.
  void pass_over(size_t place, const task& what, const std::string& why);

  /// Keeps the verdict of one answer for write(). Thread safety: the caller's.
  void keep(size_t place, const task& what, nlohmann::ordered_json verdict,
            wire::BuildResult::Reader built);

  /// Writes the suite's own file of results, where one was asked for.
  expected<void> write() const;

private:
  struct kept {
    std::string folder;
    nlohmann::ordered_json verdict;
    std::string build_log;
    bool judged = false;
  };

  const suite_solutions* suite_ = nullptr;
  std::string path_;
  std::string results_; // file to write; empty: none
  std::vector<suite_candidate> answers_;
  std::vector<kept> kept_;
};

/// Adds --suite, --release and --graded.
std::vector<cli::option_spec> with_suite_options(std::vector<cli::option_spec> options);

} // namespace kernelmill::commands
