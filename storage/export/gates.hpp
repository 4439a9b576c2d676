#pragma once

// What is decided over all runs of an export before a group is read.

#include <map>
#include <string>
#include <vector>

#include "storage/export/dataset.hpp"

namespace kernelmill::exports {

struct chosen_split {
  std::string split;
  bool own = false; ///< a task says so itself
};

/// One split for each task, over all runs: where they differ, dev wins, since what a model was
/// trained on cannot be held out any more.
class split_table {
public:
  /// Writes down in `done` where runs differ.
  split_table(const std::vector<source>& from, report& done);

  chosen_split operator()(const std::string& task) const;

  /// Whether a task is held out: without one there is nothing to compare train with.
  bool has_dev() const;

private:
  void choose(const std::string& task, const std::vector<source>& from, report& done);

  std::map<std::string, chosen_split> chosen_;
};

/// What is refused as a task of one run is refused under another name, too.
class licence_gate {
public:
  explicit licence_gate(const std::vector<source>& from);

  permit of_task(const source& from, const std::string& task) const;

  /// Errors: "licence_forbids" when every task of the runs is refused, with the first's reason.
  expected<void> check(const std::vector<source>& from) const;

private:
  std::map<std::string, permit> refused_; ///< by digest
};

} // namespace kernelmill::exports
