#pragma once

// Whether a task is fit to train on: its baseline passes, its reference behaves, nothing that
// needs no work passes, nor does a starter that is to be repaired. On a GPU slot the baseline is
// baseline.cu, and reference.cu must agree with reference.cpp.

#include "gpu/referee/evaluation.hpp"

namespace kernelmill {

struct check_record {
  std::vector<std::string> problems;
  std::vector<std::string> notes;
};

check_record check_task(referee_parts parts, prepared_task& prepared);

/// The same before candidates are judged, as a fault of the configuration: no verdict by such a
/// task means anything. Empty where it is fit; found out once for each prepared task.
const std::optional<error>& unfit(referee_parts parts, prepared_task& prepared);

Message<wire::CheckResult> check_result(const check_record& record, double seconds);

Message<wire::CheckResult> check_request(referee_parts parts, wire::CheckRequest::Reader request);

} // namespace kernelmill
