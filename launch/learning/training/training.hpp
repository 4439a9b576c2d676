#pragma once

// The loop: groups, a batch, the trainer, new weights, served, and again. Whatever is killed, the
// same call goes on: a step begins with the checkpoint before it, and the HANDOFF gives back what
// was taken and not kept.

#include <functional>
#include <memory>

#include "launch/learning/training/child_processes.hpp"
#include "launch/learning/training/handoff_client.hpp"
#include "launch/learning/training/journal_summary.hpp"
#include "launch/learning/training/selection.hpp"
#include "launch/learning/training/train_config.hpp"
#include "launch/learning/training/trainer_hook.hpp"
#include "launch/learning/training/training_record.hpp"

namespace kernelmill::training {

struct training_options {
  train_config config;
  chosen_tasks tasks;
  handoff_client to;
  std::shared_ptr<spawner> processes;
  go_on check; ///< its error ends the training: Ctrl-C
  /// A line of checkpoints.jsonl or of evaluations.jsonl, as it is written.
  std::function<void(const training_record::line&)> tell;
};

/// Folder of the runs, below the training's.
std::string runs_of(const std::string& dir);

class training {
public:
  using line = training_record::line;

  static expected<std::unique_ptr<training>> open(training_options options);

  /// Goes on to the last step. Errors: those of the trainer, of the policy's server, of orders.
  expected<void> run();

private:
  /// What a step learns from, and what came beside it.
  struct collected {
    std::vector<std::string> groups; ///< all that were taken
    std::vector<nlohmann::json> rows;
    std::set<std::string> versions;
    uint64_t alike = 0, rounds = 0;
    journal_summary summary;
  };

  explicit training(training_options options, training_record record);

  uint64_t step() const { return record_.steps().size(); } ///< the next one
  std::string version() const;
  std::string weights() const;
  size_t stage_at(uint64_t step) const;

  expected<void> check() const;
  expected<void> serve_weights();
  expected<std::string> order_step(uint64_t step, uint64_t round);
  expected<void> order(const std::string& name, const std::vector<std::string>& tasks,
                       uint64_t groups, uint64_t group_size, const nlohmann::json& more);
  expected<std::vector<nlohmann::json>> take(const std::string& order, const std::string& consumer,
                                             uint64_t generation, uint64_t step);
  expected<journal_summary> summary_of(const std::string& order, uint64_t groups) const;
  void add_rows(collected& to, std::vector<nlohmann::json> groups) const;
  expected<collected> collect(uint64_t step);
  expected<learned_step> learn(uint64_t step, const collected& from);
  expected<void> take_step();
  expected<void> evaluate();
  void remove_old() const;

  training_options options_;
  training_record record_;
  child_processes children_;
  uint64_t generation_ = 0;
  bool has_served_ = false; ///< a server that cannot load weights had its first ones
  std::string policy_;      ///< `policy` of the runs, as JSON
};

} // namespace kernelmill::training
