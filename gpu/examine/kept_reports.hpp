#pragma once

// What a tool wrote about a candidate, for the share of turns that keep it (profile.share). A tool
// that fails leaves a text that says so: it is no finding, no problem of a gate and no fault.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/examine/memory_checks.hpp"

namespace kernelmill {

struct kept_report {
  std::string name; ///< as a file: "memcheck.txt", "ncu.csv"
  std::string text;
};

/// A report as it is stored: its first 256 KiB, each byte that is no text of ASCII as '?'. What a
/// candidate prints may stand in it.
std::string kept_text(std::string_view report);

/// Appends to those that `out` has.
void add_reports(wire::EvaluateResult::Builder out, const std::vector<kept_report>& more);

/// Adds a part of the time for which the evaluation held its slot.
void add_span(wire::EvaluateResult::Builder out, const char* name, double seconds);

/// Returns `judged` with ncu's table of a candidate that is right on a GPU, where the request asks
/// for reports. ncu has 60 s, and what is left of the request's deadline, counted from when it
/// `begun` (now_seconds()).
Message<wire::EvaluateResult> with_ncu_report(const memory_checker& by, const task& what,
                                              wire::EvaluateRequest::Reader request,
                                              const Message<wire::EvaluateResult>& judged,
                                              double begun);

} // namespace kernelmill
