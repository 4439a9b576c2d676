#pragma once

// What a training keeps beside its runs: a line a step in checkpoints.jsonl, a line an evaluation
// in evaluations.jsonl, and both as TensorBoard's events. All of it is read again at the next
// start.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::training {

class training_record {
public:
  using line = nlohmann::ordered_json;

  /// Lines of one file. A process that is killed within a line leaves half of it behind `bytes`.
  struct file {
    std::string path;
    std::vector<line> lines;
    size_t bytes = 0;     ///< of whole lines
    bool is_open = false; ///< no newline ends the last one

    expected<void> add(line x);
  };

  /// Reads what is in the folder, and changes nothing: others look at a training that goes on.
  /// `steps`: of the whole training. Errors: "training_damaged".
  static expected<training_record> open(const std::string& dir, uint64_t steps);

  const std::vector<line>& steps() const { return steps_.lines; }
  const std::vector<line>& evaluations() const { return evaluations_.lines; }
  bool is_evaluated(uint64_t after) const;
  /// Whether a group was learned from.
  bool has_learned(const std::string& group) const { return learned_.contains(group); }

  /// Durable when they return.
  expected<void> add_step(line x);
  expected<void> add_evaluation(line x);

  /// Adds to TensorBoard's events what is not there yet.
  expected<void> write_events();

private:
  std::string dir_;
  uint64_t total_ = 0;
  file steps_, evaluations_;
  std::set<std::string> learned_;
};

} // namespace kernelmill::training
