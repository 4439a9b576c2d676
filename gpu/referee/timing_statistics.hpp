#pragma once

// From the times of interleaved calls to a speedup with an interval. One block is reference,
// candidate, candidate, reference: drift that is linear in time cancels within it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelmill {

struct timed_block {
  double reference[2]; ///< seconds
  double candidate[2];
  /// Its place among all blocks of an evaluation, by which it is known what the machine did at that
  /// moment; equal where nobody says.
  size_t place = 0;
};

struct speedup_interval {
  double estimate = 0; ///< Hodges-Lehmann: median of the averages of all pairs of blocks
  double low = 0;      ///< 95 % interval, two-sided
  double high = 0;

  double relative_half_width() const { return estimate > 0 ? (high - low) / 2 / estimate : 0; }
};

/// Mean of the logarithms of the block's two ratios.
double log_ratio(const timed_block& x);

double median(std::vector<double> x);

inline constexpr double of_a_median = 1.2533; ///< its standard error, by that of a mean
inline constexpr double of_a_normal = 1.4826; ///< its deviation, by the median of what it is off

/// From reference time / candidate time of each block, in logarithms. The interval comes from the
/// signed-rank distribution, which from 12 blocks on one wild block does not move, and from
/// Student's t when there are fewer than 6 blocks. Stopping as soon as the interval is narrow costs
/// it 1 to 2 of its 95 % (timing_statistics_test simulates it). One block says nothing: 0 to
/// infinity. REQUIRES: at least one block.
speedup_interval estimate_speedup(const std::vector<timed_block>& blocks);

/// The same interval, wider by what one process differs from the next that runs the same code:
/// `spread`, the standard deviation of the logarithm of the speedup.
speedup_interval widened(const speedup_interval& x, double spread);

/// What one process differs from the next that runs the same code, on a CPU: where its pages lie,
/// and so which lines of the caches they share. See docs/explanation/honest-timing.md for the
/// source.
inline constexpr double host_process_spread = 0.015;

/// The same in seconds of a call, however long that takes. With both, 246 of 256 intervals of
/// sixteen kernels of 35 to 180 us hold their kernel's median on two quiet cores.
inline constexpr double host_call_spread = 0.8e-6;

/// Standard deviation of the logarithm of a speedup between processes that run the same code.
double spread_of_processes(double candidate_seconds, double reference_seconds);

/// By how much the speedup of these blocks is too large because the reference is slower when it is
/// called second, beyond what the candidate is slower by then; nothing where that may be noise.
/// Of each block, the first pair has the reference first, the second one the candidate.
std::optional<double> slowed_by_order(const std::vector<timed_block>& blocks);

struct kind_blocks;

/// Half of the relative width of the interval that these blocks would have if the candidate always
/// took the same time: what the baseline's own noise makes of it. REQUIRES: at least one block.
double baseline_half_width(const std::vector<kind_blocks>& kinds);

/// Mean of all but the largest tenth: a single one has many causes.
double trimmed_mean(std::vector<double> x);

/// Blocks whose calls had one kind of contents. Both sides of a block had the same.
struct kind_blocks {
  std::string name;
  std::vector<timed_block> blocks;
};

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
/// by, and at most twice the baseline's. Else pays the kind with the lowest speedup, of those on
/// which the candidate itself takes longer. The first kind is the task's own. Kinds without blocks
/// do not count. REQUIRES: at least one block.
paid_speedup pay_slowest(const std::vector<kind_blocks>& kinds);

/// The same where it is known that no kind is slower. Kinds that differ because the baseline is
/// faster or slower there are left out. The low end is at most what the kinds besides the task's
/// own show together: of two kinds of blocks that differ, half each, the interval of all would
/// begin in between. REQUIRES: at least one block.
paid_speedup pay_alike(const std::vector<kind_blocks>& kinds);

/// A kind besides the task's own that may be slower: by more than 5 % and one and a half standard
/// errors. Of a dozen kinds of an honest candidate one often is, and a candidate that is now fast,
/// now slow hides one of its kinds from four of them: so this is a reason to time a kind again, and
/// none to pay it. Of several the one with the lowest speedup; nothing while noise is unknown.
std::optional<std::string> doubtful_kind(const std::vector<kind_blocks>& kinds);

/// How many times slower a candidate is on the same kind than it was before, by speedups; nothing
/// where that may be noise. Its times say nothing of two moments: the machine's clock changes.
std::optional<double> slower_now(const kind_blocks& before, const kind_blocks& now);

/// Whether four standard errors of what two kinds differ by are less than 10 %.
bool tells_apart(const kind_blocks& own, const kind_blocks& other);

/// Whether there are neighbours enough to tell noise; before that no kind is slower than others.
bool knows_noise(const std::vector<kind_blocks>& kinds);

struct stopping_rule {
  uint32_t min_blocks = 5;
  uint32_t max_blocks = 30;
  double half_width = 0.03;
  double budget_seconds = 1.5;
};

/// Returns why timing ends after these blocks, or an empty text.
std::string stop_reason(const std::vector<timed_block>& blocks, const stopping_rule& rule,
                        double elapsed_seconds);

/// The same where blocks have kinds of contents: also when what would be paid is known well enough.
/// Kinds on which the baseline is faster or slower are not paid, and make the whole look unsure.
std::string stop_reason_by_kind(const std::vector<kind_blocks>& kinds, const stopping_rule& rule,
                                double elapsed_seconds);

} // namespace kernelmill
