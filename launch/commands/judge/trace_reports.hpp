#pragma once

// What nsys, rocprofv3 and rocm-smi recorded, for people and as documents.

#include <string>

#include "gpu/profiler/trace_report.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

nlohmann::ordered_json trace_document(const trace_report& report);
std::string trace_text(const trace_report& report, bool colour);

/// What to do where there is nothing in a report.
const char* hint_of(const trace_report& report);

} // namespace kernelmill::commands
