#pragma once

// What rocprofv3 wrote with --output-format csv: *_kernel_trace.csv (one row a dispatch) and
// *_counter_collection.csv (one row a dispatch and counter).

#include <string_view>

#include "gpu/profiler/trace_report.hpp"

namespace kernelmill {

/// Whether a text begins with the header of one of them.
bool is_rocprof_csv(std::string_view text);

/// Never fails: what cannot be read is a problem of the report.
trace_report read_rocprof_csv(std::string_view text);

} // namespace kernelmill
