#include "launch/import/suite_solutions.hpp"

#include <algorithm>
#include <array>

namespace kernelmill {

std::span<const suite_solutions> all_suite_solutions() {
  static constexpr std::array rows{
      suite_solutions{"compute-eval", "a solutions.jsonl or *-solutions.tar.gz",
                      read_compute_eval_solutions, nullptr, compute_eval_results},
      suite_solutions{"sol",
                      "a solution.json of SOL-ExecBench or flashinfer-trace, or a folder of them",
                      read_sol_solutions, nullptr, sol_results},
  };
  return rows;
}

const suite_solutions* find_suite_solutions(const std::string& name) {
  auto rows = all_suite_solutions();
  auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& x) { return x.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

} // namespace kernelmill
