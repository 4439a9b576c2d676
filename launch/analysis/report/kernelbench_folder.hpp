#pragma once

// A run as a folder that KernelBench's own analysis reads, a level at a time:
//   level1/eval_results.json       docs/how-to/report-a-run.md
//   baseline_time_kernelmill.json  the references' times, as a timing file of the benchmark
// Its scripts/benchmark_eval_analysis.py takes them with run_name=level1 level=1
// eval_results_dir=DIR baseline_file=DIR/baseline_time_kernelmill.json.

#include "launch/analysis/report/eval_results.hpp"

namespace kernelmill::reporting {

/// The timing file. The analysis reads sample 0 of each problem and divides `mean` by its runtime;
/// `mean` is such that the quotient is the sample's measured speedup. A problem whose sample 0 has
/// no time has null: the analysis must count it, and reads the time of correct samples alone.
nlohmann::ordered_json baseline_times_json(const std::vector<sample>& samples);

struct kernelbench_folder {
  std::vector<written_file> files;  ///< eval_results.json of each level
  std::string baseline;             ///< the timing file
  uint64_t passed_over = 0;         ///< samples of tasks that are no problem of KernelBench
  std::vector<std::string> untimed; ///< tasks whose sample 0 is right and has no time
};

/// Each file appears whole or not at all. Errors: "not_found" when no sample is of a problem of the
/// benchmark, those of the disk.
expected<kernelbench_folder> write_kernelbench_folder(const std::vector<sample>& samples,
                                                      const std::string& directory);

} // namespace kernelmill::reporting
