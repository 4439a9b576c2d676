#pragma once

// INTERNAL to gpu/referee: which kind of contents is paid alone, where a candidate seems to be
// slower on one.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/referee/paid_kinds.hpp"

namespace kernelmill {

struct slow_kind {
  size_t kind;
  double times_slower;
};

/// Of a dozen kinds, one seems slow by chance. So a kind that seems to be is timed again beside the
/// task's own, the first of `blocks`, and only what shows then is believed; `blocks` then holds
/// what counts. `take` times a block of a kind and adds it to `blocks`; false when there is no time
/// for it. Nothing where no kind is slower.
std::optional<slow_kind> settle_doubts(std::vector<kind_blocks>& blocks,
                                       const std::function<bool(size_t)>& take);

/// The kind that is to be timed next, whatever the budget: one on which the candidate is slower, or
/// may be, of which there are fewer blocks than four, or fewer than sixteen that do not tell yet. A
/// shortcut hides behind a noisy machine from four standard errors, not from one and a half.
/// Nothing that only may be slower where the candidate is far slower in any case.
std::optional<std::string> unsettled_kind(std::vector<kind_blocks> kinds);

/// As pay_slowest(), and no more than a kind shows in the middle that is unsettled when time is
/// over, or after sixteen blocks: who uses it up would choose to end before a shortcut is told.
/// REQUIRES: at least one block.
paid_speedup pay_settled(const std::vector<kind_blocks>& kinds);

/// Once settle_doubts() has ended: the slow kind alone, else all, and of either no more than
/// pay_settled() where there was no time to settle a doubt. REQUIRES: at least one block.
paid_speedup pay_after_doubts(const std::vector<kind_blocks>& kinds,
                              const std::optional<slow_kind>& slow);

/// What blocks showed, two or more, before timing was ended; see timing_record::until_ended.
std::optional<speedup_interval> shown_until_ended(const std::vector<kind_blocks>& kinds);

/// Whether these blocks show a candidate that takes twice as long as the baseline and more.
bool far_slower(const std::vector<timed_block>& blocks);

/// Whether more blocks of the task's own kind are to be timed, whatever time that takes: while
/// noise is unknown, no kind is slower than others, and who uses up the time could see to that. Not
/// where the candidate is far slower in any case.
bool needs_noise(const std::vector<kind_blocks>& kinds);

/// The blocks of all kinds, one kind after the other.
std::vector<timed_block> all_of(const std::vector<kind_blocks>& kinds);

} // namespace kernelmill
