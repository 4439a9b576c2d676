#pragma once

// compute-sanitizer as a part of an evaluation: once the referee has judged device code, the same
// slot looks for races, for reads of what was never written and for accesses out of bounds.

#include <string>

#include "gpu/examine/examine.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

struct memory_checker {
  sandbox& walls;
  examine_options options; ///< its limit is not used: a request has its own
  std::string sanitizer;   ///< path of compute-sanitizer; empty: there is none
};

/// Returns `judged` with what compute-sanitizer finds, where the request asks for that. A check
/// that has no report is a problem of the result and no fault. The checks end with the first that
/// finds something.
Message<wire::EvaluateResult> with_memory_checks(const memory_checker& by, const task& what,
                                                 wire::EvaluateRequest::Reader request,
                                                 const Message<wire::EvaluateResult>& judged);

} // namespace kernelmill
