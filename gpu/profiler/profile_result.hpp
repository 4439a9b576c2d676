#pragma once

// Metrics and cards as the message that a turn keeps.

#include <span>
#include <string>
#include <vector>

#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/roofline.hpp"
#include "messages/message.hpp"
#include "messages/profile.capnp.h"

namespace kernelmill {

/// The card is of one kernel, joined with what is known of the whole call: of the costliest, or,
/// where no times are known, of the one with the surest flaw. Counters are named "metric" or, of a
/// kernel, "kernel/metric"; behind them stand the numbers of the call's place under the roofline.
Message<wire::ProfileResult> profile_result(const metric_values& call,
                                            std::span<const kernel_metrics> kernels,
                                            const std::vector<std::string>& missing, double seconds,
                                            const roofline_position& position = {});

/// "in the source: line 12 `acc[j] += w` (6 of local memory); ...": at most three lines and 320
/// bytes, so that a policy's prompt has room for the rest. Empty: no line is known.
std::string place_of(const bottleneck_finding& x);

/// Lines that say what a card's numbers are: its evidence, where in the source that is, what may
/// cause it, what else was found.
std::vector<std::string> lines_of(std::span<const bottleneck_finding> cards);

} // namespace kernelmill
