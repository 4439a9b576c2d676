#pragma once

// Metrics and cards as the message that a turn keeps.

#include <span>
#include <string>
#include <vector>

#include "gpu/profiler/cards.hpp"
#include "messages/message.hpp"
#include "messages/profile.capnp.h"

namespace kernelmill {

/// The card is of one kernel, joined with what is known of the whole call: of the costliest, or,
/// where no times are known, of the one with the surest flaw. Counters are named "metric" or, of a kernel, "kernel/metric".
Message<wire::ProfileResult> profile_result(const metric_values& call,
                                            std::span<const kernel_metrics> kernels,
                                            const std::vector<std::string>& missing,
                                            double seconds);

/// Lines that say what a card's numbers are: its evidence, what may cause it, what else was found.
std::vector<std::string> lines_of(std::span<const bottleneck_finding> cards);

} // namespace kernelmill
