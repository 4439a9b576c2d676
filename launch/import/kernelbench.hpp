#pragma once

// KernelBench's problems as tasks. The problems come from a checkout of the benchmark or from its
// problems.jsonl, wherever its user has them; none of them is part of Kernelmill.

#include <cstdint>
#include <string>
#include <vector>

#include "launch/import/reading/suite_reading.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct kernelbench_problem {
  uint32_t level = 0;
  uint32_t problem_id = 0;
  std::string name; ///< "19_ReLU": the last part of the task's id
  std::string code;
  std::string place; ///< "problems.jsonl, line 19": for error texts

  std::string id() const { return "kernelbench/level" + std::to_string(level) + "/" + name; }
};

/// Reads all problems of a problems.jsonl, or of a folder that holds one, KernelBench/level1/*.py
/// or level1/*.py; in the order of level and number. Fails with "missing_file", and with
/// "bad_problem" naming file and line; then nothing of it can be used.
expected<std::vector<kernelbench_problem>> read_kernelbench(const std::string& path);

/// "matmul", "convolution", "activation", "normalization", "reduction", "pooling", "loss",
/// "attention", "scan", "elementwise", "fusion" (level 2) or "network" (from level 3 on), by the
/// problem's name.
std::string operator_family_of(const kernelbench_problem& x);

/// task.json, problem.py and prompt.md. The same problem gives the same bytes. Without a
/// `precision` tensors keep the types that the problem gives them.
std::vector<task_file> task_files_of(const kernelbench_problem& x,
                                     const std::string& precision = {});

/// All of them as tasks; of one level with --level, in one type with --precision. A problem that
/// loads a model gets its configuration from the folder of --models, and is refused without.
expected<suite_reading> read_kernelbench_suite(const std::string& path,
                                               const suite_options& options);

} // namespace kernelmill
