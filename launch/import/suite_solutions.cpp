#include "launch/import/suite_solutions.hpp"

#include <algorithm>
#include <array>

#include "launch/import/python_solutions.hpp"

namespace kernelmill {

std::span<const suite_solutions> all_suite_solutions() {
  static constexpr std::array rows{
      suite_solutions{"compute-eval", "a solutions.jsonl or *-solutions.tar.gz",
                      read_compute_eval_solutions, nullptr, compute_eval_results},
      suite_solutions{"sol",
                      "a solution.json of SOL-ExecBench or flashinfer-trace, or a folder of them",
                      read_sol_solutions, nullptr, sol_results},
      suite_solutions{"kernelbench",
                      "a folder of level_1_problem_2_sample_0_kernel.py, to which "
                      "eval_results.json is written",
                      read_kernelbench_generations, "eval_results.json", kernelbench_results},
      suite_solutions{"robust-kbench", "a folder with TASK/forward.cu or TASK/forward/kernel.cu",
                      read_robust_kbench_answers, nullptr, no_suite_results},
      suite_solutions{"gpu-mode", "a folder with SET/PROBLEM/submission.py or solutions",
                      read_gpu_mode_submissions, nullptr, no_suite_results},
  };
  return rows;
}

const suite_solutions* find_suite_solutions(const std::string& name) {
  auto rows = all_suite_solutions();
  auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& x) { return x.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

} // namespace kernelmill
