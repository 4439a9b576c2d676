#pragma once

// What is decided over all runs of an export before a group is read.

#include <map>
#include <string>
#include <vector>

#include "storage/export/dataset.hpp"
#include "storage/export/licences/licence_gate.hpp"

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

/// The gate of all runs of an export.
licence_gate gate_of(const std::vector<source>& from);

} // namespace kernelmill::exports
