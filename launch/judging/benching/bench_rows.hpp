#pragma once

// What several evaluations of a candidate at one shape say together.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelmill::benching {

/// An estimate with its 95 % interval. Without one where a single evaluation tells none.
struct with_interval {
  double estimate = 0;
  std::optional<double> low, high;
};

/// One evaluation that was timed: a process of the candidate, and medians of its calls.
struct bench_sample {
  double candidate_ms = 0;
  double reference_ms = 0;
  with_interval speedup; ///< by the referee, from pairs of calls
  uint32_t calls = 0;    ///< that were timed and checked
};

struct bench_row {
  std::string name;  ///< of the shape; may be empty
  std::string shape; ///< "rows=128 cols=1024"
  std::vector<bench_sample> samples;
  std::string outcome;  ///< of the verdict; empty: the shape could not be judged
  std::string category; ///< "success", "slower", "wrong_result", "bad_task", ...
  std::string reason;   ///< why there is no time; empty where there is one
  bool machine_failed = false;
  double bytes = 0; ///< that one call must move, by the task; 0: it says none
  double flops = 0;
  double roofline_ms = 0; ///< 0: unknown

  bool timed() const { return !samples.empty() && reason.empty(); }
  uint32_t calls() const;
  /// REQUIRES, all three: timed(). Each evaluation is one value, so that an interval has what one
  /// process differs from the next by. Of one evaluation the speedup has the referee's interval.
  with_interval candidate_ms() const;
  with_interval reference_ms() const;
  with_interval speedup() const;
};

/// Estimate and interval of positive values, in logarithms: estimate_speedup() of the referee.
/// REQUIRES: there is a value.
with_interval interval_of(const std::vector<double>& values);

} // namespace kernelmill::benching
