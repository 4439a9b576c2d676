#pragma once

// INTERNAL to gpu/referee and gpu/torch: whose doing it is that a right candidate has no time.
// What the machine did is tried again, and if it lasts, the turn is left out of its group's
// comparison. A candidate must not be able to choose that, so only what was seen of the baseline,
// which runs while the candidate stands still, speaks against the machine.

#include "gpu/referee/evaluation.hpp"

namespace kernelmill {

/// `machine` where at least half of the baseline's calls (four or more) were disturbed, or where
/// its own noise, over at least six blocks, is its full share of an interval as wide as `widest`,
/// and the candidate does not look far slower all the same; else `candidate`.
untimed whose_doing(const baseline_record& baseline, double widest);

/// Ends a record that was to be timed. An interval of which half is wider than `widest`, relative,
/// says nothing, and is none, unless all of it lies below 1: that one is slower is known. A right
/// candidate without a time gets a reason, and no figures.
void settle_untimed(evaluation_record& record, double widest);

} // namespace kernelmill
