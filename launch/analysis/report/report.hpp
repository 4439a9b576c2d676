#pragma once

// The figures of a set of samples: for each level or suite, verb or family, and in all.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/analysis/report/sample.hpp"

namespace kernelmill::reporting {

struct thresholds {
  std::vector<double> p;   ///< of fast_p
  std::vector<uint64_t> k; ///< of pass@k
};

struct fast_row {
  double p = 0;
  uint64_t count = 0;          ///< by the estimate of the speedup
  uint64_t count_by_low = 0;   ///< by the lower bound of its interval
  std::optional<double> share; ///< of all samples
};

struct pass_row {
  uint64_t k = 0;
  std::optional<double> value; ///< mean over the problems with at least k samples
  uint64_t problems = 0;       ///< how many these are
};

/// A mean, and over how many.
struct average {
  std::optional<double> value;
  uint64_t n = 0;
};

struct report_row {
  std::string group; ///< "level 1", "native", "debug", "all"
  std::optional<uint32_t> level;
  uint64_t problems = 0;                 ///< with at least one sample
  uint64_t samples = 0;                  ///< what every rate is a share of
  uint64_t infrastructure = 0, open = 0; ///< left out
  uint64_t compiled = 0, correct = 0;
  uint64_t timed = 0;         ///< correct ones whose speedup is known
  uint64_t with_interval = 0; ///< of these, with a lower bound
  uint64_t not_timed = 0;     ///< correct ones of the category `not_timed`
  std::vector<fast_row> fast;
  uint64_t fast_1_by_low = 0; ///< correct, and certainly faster than the baseline
  std::vector<pass_row> pass;
  std::optional<double> best_speedup_lower; ///< as the next two: docs/reference/glossary.md#figures
  average geomean_speedup, geomean_speedup_of_faster;
  average turns_mean, turns_median; ///< to the first correct turn, over episodes that have one
};

/// What tasks stand together in a row.
enum class grouping : unsigned char { level, verb, family };

struct report {
  grouping by = grouping::level;
  std::vector<report_row> groups; ///< by name
  report_row all;
  bool knows_left_out = true;
};

/// Tasks of which no turn says the verb or the family are in a row named "unknown".
report make_report(const sample_set& from, const thresholds& at, grouping by = grouping::level);

/// Two tables: rates, then means.
std::string to_text(const report& x);

nlohmann::ordered_json to_json(const report& x);

} // namespace kernelmill::reporting
