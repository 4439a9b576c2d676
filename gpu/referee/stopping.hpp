#pragma once

// When timing ends.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

struct stopping_rule {
  uint32_t min_blocks = 5;
  uint32_t max_blocks = 30;
  double half_width = 0.03;
  double budget_seconds = 1.5;
  /// Each kind of contents: before, nothing is a reason.
  bool all_met = true;
};

/// That reason to stop which says that the interval is narrow. A referee that pays less than the
/// pairs say can be left with a wide one all the same.
inline constexpr const char* narrow_enough = "the interval is narrow enough";

/// Who is given up is paid by the blocks that there are: one that is fast afterwards has chosen
/// when that came.
inline constexpr const char* hopeless = "slower than half the reference in every block";

/// Returns why timing ends after these blocks, or an empty text.
std::string stop_reason(const std::vector<timed_block>& blocks, const stopping_rule& rule,
                        double elapsed_seconds);

/// The same where blocks have kinds of contents: also when what would be paid is known well enough.
/// Kinds on which the baseline is faster or slower are not paid, and make the whole look unsure.
std::string stop_reason_by_kind(const std::vector<kind_blocks>& kinds, const stopping_rule& rule,
                                double elapsed_seconds);

} // namespace kernelmill
