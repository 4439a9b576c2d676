#pragma once

// KernelBench's own files. eval_results.json holds one level:
//   {"19": [{"sample_id": 0, "compiled": true, "correctness": true, "metadata": {...},
//            "runtime": 0.12, "runtime_stats": {...}}]}
// with times in milliseconds and -1 for one that was not measured. What the benchmark has no key
// for stands in metadata.kernelmill, so that a file of ours reads back as what it was made of.
// A timing file holds the reference's times: {"level1": {"19_ReLU.py": {"mean": 0.2, ...}}}.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/analysis/report/sample.hpp"
#include "messages/error.hpp"

namespace kernelmill::reporting {

// -- writing ------------------------------------------------------------------------------------

/// The document of one level; samples of other tasks are passed over.
nlohmann::ordered_json eval_results(const std::vector<sample>& samples, uint32_t level);

struct written_file {
  uint32_t level = 0;
  std::string file;
  uint64_t samples = 0;
};

struct written_files {
  std::vector<written_file> files;
  uint64_t passed_over = 0; ///< samples of tasks that are no problem of KernelBench
};

/// Writes a file for each level; "{level}" in `file` becomes its number. Each appears whole or not
/// at all. Errors: "usage" when there are several levels and no "{level}", "not_found" when there
/// is no level at all, those of the disk.
expected<written_files> write_eval_results(const std::vector<sample>& samples,
                                           const std::string& file);

// -- reading ------------------------------------------------------------------------------------

/// Mean time of the reference in milliseconds, by level and problem.
using baseline_times = std::map<uint32_t, std::map<uint32_t, double>>;

/// Errors: "not_found", "bad_baseline_times" with file and key.
expected<baseline_times> read_baseline_times(const std::string& file);

struct eval_results_source {
  std::string file;
  std::optional<uint32_t> level; ///< none: what the file says, which the benchmark's do not
  const baseline_times* baseline = nullptr; ///< for entries without ref_runtime
};

/// Missing keys are as the benchmark leaves them: not compiled, not correct, not measured. The
/// speedup is the one that Kernelmill wrote, else ref_runtime / runtime, else the baseline's mean /
/// runtime. Errors: "not_found", "bad_eval_results" with file and key.
expected<sample_set> read_eval_results(const eval_results_source& source);

} // namespace kernelmill::reporting
