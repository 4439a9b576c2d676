#pragma once

// What `rocm-smi --json` and `rocm-smi --csv` wrote: temperatures, clocks, use, memory and power of
// each GPU at one moment.

#include <string_view>

#include "gpu/profiler/trace_report.hpp"

namespace kernelmill {

/// One line of the table of what is read.
struct reading_row {
  std::optional<double> gpu_reading::*value;
  std::string_view name; ///< ours: "edge_celsius"
  /// rocm-smi's, in small letters and without the colon that some versions end clocks with.
  std::array<std::string_view, 3> keys;
};

const std::vector<reading_row>& reading_table();

/// Whether a text is one of them; warnings may stand before it.
bool is_rocm_smi(std::string_view text);

/// Never fails: what cannot be read is a problem of the report.
trace_report read_rocm_smi(std::string_view text);

} // namespace kernelmill
