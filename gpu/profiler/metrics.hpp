#pragma once

// What is known of one kernel: a number for each metric, or nothing. Every source fills the same
// table: what a build and an evaluation tell for free (tier 0), and ncu's counters (tier 1). Rules
// read the table and never a source (cards.hpp).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

/// In the order of metric_table().
enum class metric : unsigned char {
  time,
  call_time,
  launches,
  roofline_memory,
  roofline_compute,
  block_threads,
  grid_blocks,
  waves,
  registers,
  static_shared,
  dynamic_shared,
  spill_bytes,
  theoretical_occupancy,
  achieved_occupancy,
  compute_throughput,
  memory_throughput,
  dram_throughput,
  dram_bytes,
  issue_active,
  instructions,
  active_threads,
  load_bytes_per_sector,
  store_bytes_per_sector,
  load_sectors,
  load_requests,
  shared_wavefronts,
  bank_conflicts,
  local_loads,
  local_stores,
  global_atomics,
  global_reductions,
  shared_atomics,
  fp64_pipe,
  fma_pipe,
  tensor_pipe,
  fp32_adds,
  fp32_muls,
  fp32_fmas,
  stall_long_scoreboard,
  stall_short_scoreboard,
  stall_barrier,
  stall_lg_throttle,
  count_, ///< how many there are; no metric
};

inline constexpr size_t metric_count = static_cast<size_t>(metric::count_);

/// How much of ncu's counters is asked for: `quick` has what says which of the machine's limits is
/// near; `full` has what every rule reads.
enum class metric_pack : unsigned char { quick, full };

struct metric_row {
  metric id;
  std::string_view name; ///< ours: "dram_throughput"
  std::string_view unit; ///< ours: "us", "%", "bytes", ""
  /// ncu's names for it, the first that a report has counts; chips and versions differ.
  std::array<std::string_view, 3> ncu;
  double scale;     ///< from ncu's base unit to ours
  bool is_of_tier0; ///< builds and evaluations can tell it
  bool is_in_quick; ///< of the packs; `full` has all that ncu can tell
  std::string_view meaning;
};

std::span<const metric_row, metric_count> metric_table();

inline const metric_row& row_of(metric x) {
  return metric_table()[static_cast<size_t>(x)];
}

/// Thread safety: as a value.
class metric_values {
public:
  metric_values();

  /// Nothing: it was not measured. No number stands for "missing".
  std::optional<double> operator[](metric x) const;

  /// A value that is not finite is none: some versions of ncu write NaN for what they cannot read.
  void set(metric x, double value);

  bool empty() const;

private:
  std::array<double, metric_count> values_; // NaN: not measured
};

/// A line of the candidate's source that has instructions of the kind that a finding is about.
struct finding_line {
  uint32_t line = 0;
  uint32_t instructions = 0;
  std::string_view what; ///< "local memory", "double precision", ...
  std::string source;    ///< its text; may be empty
};

struct kernel_metrics {
  std::string kernel; ///< demangled; of a whole call: empty
  metric_values values;
  std::vector<finding_line> spills = {}; ///< where registers are spilled, if the build tells
};

} // namespace kernelmill
