#pragma once

// What the tool calls of a turn add to its verdict: the parts that they earn, and what their
// measurements found against integrity. A cheat that was only tried costs as much as one that was
// submitted, once a turn.

#include <vector>

#include "actors/governance/reward.hpp"

namespace kernelmill {

struct calls_effect {
  std::vector<wire::Finding::Reader> critical; ///< of measurements other than the submission's
  std::vector<reward_part> shaping;
};

/// Adds the critical findings of a measurement.
void add_critical(calls_effect& to, wire::Verdict::Reader measured);

/// Of a turn that asked for no verdict: outcome `open`, and a reward of 0 where its calls neither
/// earn nor cost anything.
Message<wire::Verdict> open_verdict(const calls_effect& calls, const reward_config& config);

/// The verdict of a submission with what the calls of its turn add. One without a reward stays.
Message<wire::Verdict> with_calls(const Message<wire::Verdict>& judged, const calls_effect& calls,
                                  const reward_config& config);

} // namespace kernelmill
