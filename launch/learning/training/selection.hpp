#pragma once

// Which tasks a step is of: the stage that holds, and a seeded choice among its tasks.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/task/task.hpp"
#include "launch/learning/training/train_config.hpp"

namespace kernelmill::training {

struct task_facts {
  std::string id, difficulty, level; ///< level: "1" of a suite; empty: none
};

/// The tasks of a training, held out ones apart.
struct chosen_tasks {
  std::vector<task_facts> train;
  std::vector<std::string> held_out;
  std::vector<task_ptr> all; ///< of both, as they were loaded
};

/// Errors: "unknown_task"; "config_inconsistent" when a task is on both sides, under one id or with
/// the same files, or when a stage has too few tasks for a batch.
expected<chosen_tasks> choose_tasks(const train_config& config);

/// The number of the stage of a step; `correct` has the share of right answers of each step before
/// it that counts. 0 where there are no stages.
size_t stage_of(const std::vector<stage>& stages, uint64_t step,
                const std::vector<double>& correct);

/// The tasks that a stage takes.
expected<std::vector<std::string>> tasks_of(const train_config& config, const chosen_tasks& tasks,
                                            size_t stage);

/// Some of them in alphabetical order, the same for the same step and round.
std::vector<std::string> draw_tasks(std::vector<std::string> from, size_t count, uint64_t seed,
                                    uint64_t step, uint64_t round);

} // namespace kernelmill::training
