#pragma once

// Summary of a run's journal: its samples by task, findings by rule, and the means of its groups'
// metrics, by the keys of metrics.jsonl.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/analysis/report/metrics.hpp"
#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::training {

/// An episode by its best turn.
struct rewarded_sample {
  double reward = 0;
  reporting::scored score;
  std::string turn; ///< "step-3/g0.e1.t0"
};
using samples_by_task = std::map<std::string, std::vector<rewarded_sample>>;

struct journal_summary {
  samples_by_task samples;
  std::map<std::string, uint64_t> findings; ///< by rule
  std::map<std::string, double> metrics;    ///< "kernel/correct_rate", ...
  uint64_t groups = 0, turns = 0, lost = 0; ///< turns: lost ones among them
  std::vector<std::string> prompts;         ///< of turns, without the policy's own answers

  void add(const journal_summary& x);

private:
  std::map<std::string, std::pair<double, uint64_t>> sums_;
  friend expected<journal_summary> summarize_journal(const std::string&, bool);
};

/// Reads metrics.jsonl and traces.jsonl of a run's folder; a torn last line is left out. Prompts
/// are kept only when they are wanted.
expected<journal_summary> summarize_journal(const std::string& run, bool prompts = false);

struct interval {
  double value = 0, low = 0, high = 0;
};

/// "reward", "pass@K", "fast_P" by lower bounds, each a mean over the tasks with its 95 % interval:
/// samples are drawn again within each task, so it is about these tasks. A pass@K for which a task
/// has too few samples is left out.
std::vector<std::pair<std::string, interval>> measures_of(const samples_by_task& samples,
                                                          const std::vector<double>& fast,
                                                          const std::vector<uint64_t>& pass);

} // namespace kernelmill::training
