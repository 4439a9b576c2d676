#pragma once

// Folders of answers as the suites of the contract `torch` leave them, and KernelBench's file of
// results. See suite_solutions.hpp.

#include <span>
#include <string>
#include <vector>

#include "launch/import/suite_solutions.hpp"

namespace kernelmill {

/// KernelBench: level_L_problem_P_sample_S_kernel.py of one level in one folder.
expected<std::vector<suite_candidate>> read_kernelbench_generations(const std::string& path,
                                                                    const solution_place& where);

/// Its eval_results.json.
expected<std::string> kernelbench_results(const std::string& path,
                                          std::span<const graded_candidate> graded);

/// robust-kbench: TASK/forward.cu and TASK/backward.cu, or TASK/forward/kernel.cu, below a folder.
expected<std::vector<suite_candidate>> read_robust_kbench_answers(const std::string& path,
                                                                  const solution_place& where);

/// GPU MODE: submission.py and solutions/*/*.py of its folders of problems.
expected<std::vector<suite_candidate>> read_gpu_mode_submissions(const std::string& path,
                                                                 const solution_place& where);

/// Of a suite that keeps no file of results: fails with "usage".
expected<std::string> no_suite_results(const std::string& path,
                                       std::span<const graded_candidate> graded);

} // namespace kernelmill
