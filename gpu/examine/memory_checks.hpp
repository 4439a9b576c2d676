#pragma once

// Sanitizers as a part of an evaluation, compute-sanitizer on a GPU and g++'s on a CPU: once the
// referee has judged a candidate, the same slot looks for races, for reads of what was never
// written and for accesses out of bounds. Of the contracts native and torch, host code of the
// candidate is in the process of the tool and can write the report: a finding is believed, since it
// only harms who forges it; the lack of one pays nothing.

#include <string>

#include "gpu/examine/host_checks.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

struct memory_checker {
  sandbox& walls;
  examine_options options;     ///< its limit is not used: a request has its own
  std::string sanitizer;       ///< path of compute-sanitizer; empty: there is none
  std::string python;          ///< interpreter that has torch, for the contract torch; may be empty
  host_compiler compiler = {}; ///< of candidates on a CPU
  std::string ncu = {};        ///< its path; empty: there is none
};

/// What a request has had judged. Fails with "library_lost" where that is gone, or another.
expected<std::string> read_judged(wire::EvaluateRequest::Reader request);

/// Returns `judged` with what sanitizers find, where the request asks for that, and with their
/// reports, where it asks for those. A check
/// that has no report is a problem of the result and no fault. The checks end with the first that
/// finds something, and with the request's deadline, counted from when it `begun` (now_seconds()).
Message<wire::EvaluateResult> with_memory_checks(const memory_checker& by, const task& what,
                                                 wire::EvaluateRequest::Reader request,
                                                 const Message<wire::EvaluateResult>& judged,
                                                 double begun);

} // namespace kernelmill
