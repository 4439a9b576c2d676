#pragma once

// What a training keeps beside its runs: a line a step in checkpoints.jsonl, a line an evaluation
// in evaluations.jsonl, and both as TensorBoard's events. All of it is read again at the next
// start.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "messages/error.hpp"

namespace kernelmill::training {

class training_record {
public:
  using line = nlohmann::ordered_json;

  /// Reads what is in the folder. `steps`: of the whole training. Errors: "training_damaged".
  static expected<training_record> open(const std::string& dir, uint64_t steps);

  const std::vector<line>& steps() const { return steps_; }
  const std::vector<line>& evaluations() const { return evaluations_; }
  bool is_evaluated(uint64_t after) const;
  /// Whether a group was learned from.
  bool has_learned(const std::string& group) const { return learned_.contains(group); }

  /// Durable when they return.
  expected<void> add_step(line x);
  expected<void> add_evaluation(line x);

private:
  expected<void> write_events();

  std::string dir_;
  uint64_t total_ = 0;
  std::vector<line> steps_, evaluations_;
  std::set<std::string> learned_;
};

} // namespace kernelmill::training
