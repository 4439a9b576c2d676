#pragma once

// What ncu and compute-sanitizer found, for people and as documents.

#include <string>

#include <nlohmann/json.hpp>

#include "gpu/profiler/ncu_report.hpp"
#include "gpu/profiler/sanitizer_report.hpp"

namespace kernelmill::commands {

nlohmann::ordered_json ncu_document(const ncu_report& report);
std::string ncu_text(const ncu_report& report, bool colour);

/// What to do where there is no profile.
const char* hint_of(ncu_problem x);

nlohmann::ordered_json sanitizer_document(const sanitizer_report& report);
std::string sanitizer_text(const sanitizer_report& report);

/// The tool came to its end and found nothing.
bool found_nothing(const sanitizer_report& report);

} // namespace kernelmill::commands
