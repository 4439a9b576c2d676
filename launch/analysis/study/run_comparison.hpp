#pragma once

// Two runs, task by task: paired differences with their intervals, wins and losses.

#include <string>
#include <vector>

#include "launch/analysis/study/paired.hpp"
#include "launch/analysis/study/run_scores.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::study {

using json = nlohmann::ordered_json;

struct task_identity {
  std::string digest, split;
};

/// A run as it is compared.
struct compared_run {
  run_scores scores;
  std::map<std::string, task_identity> tasks; ///< of its manifest
  uint64_t lost_open = 0; ///< episodes that its latest end left open by a fault of a machine
};

struct comparison_options {
  std::vector<double> p{0, 1, 1.5, 2}; ///< of fast_p
  std::vector<uint64_t> k{1, 2, 4};    ///< of pass@k
  bool held_out = false;               ///< tasks of the split `dev` alone
  subset_draws how;
};

/// The keys "tasks", "left_out", "statistics", "wins" and "by_task" of the document. Tasks that one
/// run lacks, or whose files differ between the runs, are named and in no figure.
json compare_scores(const compared_run& a, const compared_run& b, const comparison_options& by);

} // namespace kernelmill::study
