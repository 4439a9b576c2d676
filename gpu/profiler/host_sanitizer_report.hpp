#pragma once

// What g++'s sanitizers wrote of a library for the CPU (AddressSanitizer,
// UndefinedBehaviorSanitizer, ThreadSanitizer), as the same findings that compute-sanitizer's
// reports become.

#include <string_view>

#include "gpu/profiler/sanitizer_report.hpp"

namespace kernelmill {

/// Never fails: what cannot be read is a problem of the report. A text without a finding and
/// without `end`, which the program says last, is none: a clean run of a sanitizer prints nothing.
/// Where a stack has a place in `source`, a finding is there, and not in what that calls.
sanitizer_report read_host_sanitizer_report(std::string_view text, std::string_view end,
                                            std::string_view source = "kernel.cpp");

} // namespace kernelmill
