#include "launch/import/suites.hpp"

#include <algorithm>

#include "launch/import/kernelbench.hpp"
#include "launch/import/multikernelbench.hpp"

namespace kernelmill {

const std::vector<suite_row>& suites() {
  static const std::vector<suite_row> rows{
      {"kernelbench",
       "KERNELBENCH_ROOT",
       "a checkout of KernelBench, or its problems.jsonl",
       {"--level", "--precision"},
       read_kernelbench_suite},
      {"multikernelbench",
       "",
       "a checkout of MultiKernelBench",
       {"--shapes"},
       read_multikernelbench},
  };
  return rows;
}

const suite_row& suite_of(const std::string& name) {
  return *std::find_if(suites().begin(), suites().end(),
                       [&](const auto& x) { return x.name == name; });
}

} // namespace kernelmill
