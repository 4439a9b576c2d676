#pragma once

// From blocks whose calls had several kinds of contents to what is paid: a candidate that is slower
// on one kind than on others is paid for that one.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

/// What a candidate is paid for whose rows had several kinds of contents.
struct paid_speedup {
  speedup_interval speedup;
  double reference_seconds = 0; ///< medians of one kind: of the slowest, else of the task's own
  double candidate_seconds = 0;
  /// The kind that is paid alone, because the candidate is slower on it than on others.
  std::optional<std::string> slowest;
  double times_slower = 1; ///< than on the others, medians
  /// A kind that seems to be slower but has too few blocks: time `confirming_blocks` of it, then
  /// ask again. Who ends before that is paid no more than the kind shows.
  std::optional<std::string> in_doubt;
};

/// Of a kind, before it is paid alone.
inline constexpr size_t confirming_blocks = 4;

/// Pays all blocks where no kind differs from the others by more than noise: 5 %, and four standard
/// errors of the difference of two medians. Noise is what neighbouring blocks of one kind differ
/// by, and at most twice the baseline's; of a kind whose draws differ its own, and at most one and
/// a half times the baseline's there. Else pays the kind with the lowest speedup, of those on
/// which the candidate itself takes longer. The first kind is the task's own. Kinds without blocks
/// do not count. REQUIRES: at least one block.
paid_speedup pay_slowest(const std::vector<kind_blocks>& kinds);

/// The same where it is known that no kind is slower. Kinds that differ because the baseline is
/// faster or slower there are left out. The low end is at most what the kinds besides the task's
/// own show together: of two kinds of blocks that differ, half each, the interval of all would
/// begin in between. It is at most what the task's own kind shows, too, where that seems slower
/// than the others (as of doubtful_kind()). REQUIRES: at least one block.
paid_speedup pay_alike(const std::vector<kind_blocks>& kinds);

/// A kind besides the task's own that may be slower: by more than 5 % and one and a half standard
/// errors, by the noise of all kinds together. Of a dozen kinds of an honest candidate one often
/// is, and a candidate that is now fast, now slow hides one of its kinds from four of them: so this
/// is a reason to time a kind again, and none to pay it. Of several the one with the lowest
/// speedup; nothing while noise is unknown.
std::optional<std::string> doubtful_kind(const std::vector<kind_blocks>& kinds);

/// How many times slower a candidate is on the same kind than it was before, by speedups; nothing
/// where that may be noise. Its times say nothing of two moments: the machine's clock changes.
std::optional<double> slower_now(const kind_blocks& before, const kind_blocks& now);

/// Whether four standard errors of what two kinds differ by are less than 10 %.
bool tells_apart(const kind_blocks& own, const kind_blocks& other);

/// Whether there are neighbours enough to tell noise; before that no kind is slower than others.
bool knows_noise(const std::vector<kind_blocks>& kinds);

} // namespace kernelmill
