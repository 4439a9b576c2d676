#pragma once

#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"
#include "messages/profile.capnp.h"

namespace kernelmill {

/// Reads a bottleneck card from what was counted: share of the roofline that bytes and flops
/// reach, time outside the CPU, context switches, and hardware counters where there are some.
/// Every claim in the card names the numbers that it rests on. With `reports` the counters are a
/// report, too: counters.csv.
Message<wire::ProfileResult> read_bottleneck(wire::EvaluateResult::Reader counted, double bytes,
                                             double flops, double seconds, bool reports = false);

} // namespace kernelmill
