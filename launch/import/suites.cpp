#include "launch/import/suites.hpp"

#include <algorithm>

#include "launch/import/compute_eval.hpp"
#include "launch/import/gpu_mode.hpp"
#include "launch/import/kernelbench.hpp"
#include "launch/import/model.hpp"
#include "launch/import/multikernelbench.hpp"
#include "launch/import/robust_kbench.hpp"
#include "launch/import/sol/data_set.hpp"

namespace kernelmill {

const std::vector<suite_row>& suites() {
  static const std::vector<suite_row> rows{
      {"compute-eval",
       "",
       "a *-problems.tar.gz, a problems.jsonl, or a folder with these or problem-spec.yaml below",
       {"--release", "--group", "--difficulty", "--problem"},
       read_compute_eval_suite},
      {"kernelbench",
       "KERNELBENCH_ROOT",
       "a checkout of KernelBench, or its problems.jsonl",
       {"--level", "--precision", "--models"},
       read_kernelbench_suite},
      {"model",
       "",
       "a file of your own that defines model() and inputs()",
       {"--entry", "--share", "--python"},
       read_model},
      {"multikernelbench",
       "",
       "a checkout of MultiKernelBench",
       {"--shapes"},
       read_multikernelbench},
      {"sol",
       "SOL_EXECBENCH_ROOT",
       "a folder with definition.json and workload.jsonl, or a tree of such folders",
       {"--definition", "--op", "--workloads", "--first", "--blobs"},
       sol::read_sol},
      {"flashinfer",
       "FLASHINFER_TRACE_DIR",
       "a data set with definitions/ and workloads/",
       {"--definition", "--op", "--workloads", "--first", "--blobs"},
       sol::read_flashinfer},
      {"robust-kbench",
       "",
       "a checkout of robust-kbench, or a folder of its tasks",
       {"--shapes"},
       read_robust_kbench},
      {"gpu-mode",
       "",
       "a checkout of reference-kernels, or a folder of its problems",
       {"--shapes"},
       read_gpu_mode},
  };
  return rows;
}

const suite_row& suite_of(const std::string& name) {
  return *std::find_if(suites().begin(), suites().end(),
                       [&](const auto& x) { return x.name == name; });
}

} // namespace kernelmill
