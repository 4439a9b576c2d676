#pragma once

// INTERNAL to gpu/referee: which kind of contents is paid alone, where a candidate seems to be
// slower on one.

#include <functional>
#include <optional>
#include <vector>

#include "gpu/referee/timing_statistics.hpp"

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

/// Whether these blocks show a candidate that takes twice as long as the baseline and more.
bool far_slower(const std::vector<timed_block>& blocks);

/// Whether more blocks of the task's own kind are to be timed, whatever time that takes: while noise
/// is unknown, no kind is slower than others, and who uses up the time could see to that. Not where
/// the candidate is far slower in any case.
bool needs_noise(const std::vector<kind_blocks>& kinds);

/// The blocks of all kinds, one kind after the other.
std::vector<timed_block> all_of(const std::vector<kind_blocks>& kinds);

} // namespace kernelmill
