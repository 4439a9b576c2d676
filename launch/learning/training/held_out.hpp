#pragma once

// Whether anything that a training learned from shows what it holds out: the prompts of its runs,
// with the examples in them, and the files that its policy was pretrained on.

#include <string>
#include <vector>

#include "launch/learning/training/selection.hpp"
#include "launch/learning/training/train_config.hpp"

namespace kernelmill::training {

struct leak {
  std::string task;  ///< that is held out
  std::string shown; ///< its id, a line of its prompt, or its timed shape
  std::string where; ///< "step-3", a file, or a task that has the same shape
};

struct held_out_report {
  uint64_t tasks = 0, runs = 0, prompts = 0, files = 0, texts = 0;
  std::vector<leak> leaks; ///< the first of each task, text and place
};

/// Reads everything that is there; a training that goes on may be asked too. Errors: those of
/// files.
expected<held_out_report> check_held_out(const train_config& config, const chosen_tasks& tasks);

/// What marks a held-out task: texts of which none may stand in what is learned from.
std::vector<std::string> marks_of(const task& held_out, const std::vector<task_ptr>& trained);

} // namespace kernelmill::training
