#pragma once

// Which of the rows of a pair count, where some are disturbed and some did not wait for the gate.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "gpu/referee/device/clocked_rows.hpp"
#include "gpu/referee/disturbance.hpp"

namespace kernelmill {

struct made_pair {
  row_pair rows;
  bool gate_held =
      true; ///< by the clock of the GPU's work: all launches waited, and nothing is wrong
};

/// Pairs in which one of the two, or the referee, was ready and had no core are taken again: which
/// of them that hits depends on where the scheduler has put them, and stays so for a whole
/// evaluation. A candidate is excused no more often than its baseline waits, and what chance adds
/// (excused_waits): else it could be rid of rows that it finds slow. Thread safety: none.
class pairs_that_wait {
public:
  static constexpr int most_taken = 4; ///< times, of one pair

  /// The first pair of `make` that nobody disturbed, or the last of so many, and whether that was.
  /// One of which the gate failed counts for nothing anyway, and none is taken again once
  /// `expired`. `usual`: seconds that a row waits in any case. Nothing when `make` says so.
  std::optional<made_pair> take(const std::function<std::optional<made_pair>()>& make, double usual,
                                const std::function<bool()>& expired, bool& disturbed);

  uint32_t made() const noexcept { return made_; }
  uint32_t baseline_waited() const noexcept { return baseline_waited_; } ///< in so many of them
  uint32_t taken_again() const noexcept { return taken_again_; }

private:
  excused_waits excused_;
  uint32_t made_ = 0;
  uint32_t baseline_waited_ = 0;
  uint32_t taken_again_ = 0;
};

/// How many calls the driver's queue holds behind a gate. Thread safety: none.
class queue_room {
public:
  /// The sets of a row behind a gate, of so many. A row has fewer calls than sets.
  unsigned of(unsigned sets) const noexcept { return std::min(sets, most_); }
  void limit(unsigned sets) noexcept { most_ = std::min(most_, sets); }

  /// A quarter of the calls, for a candidate whose launches did not wait in a row of so many sets.
  /// Of three sets a long row has two calls, and a short one of the baseline one.
  void shorten(unsigned sets) noexcept {
    limit(std::max(most_ / 4, 3u));
    is_shortened_ |= most_ < sets;
  }
  bool is_shortened() const noexcept { return is_shortened_; } ///< by a candidate

  /// Makes a row of a baseline by `waits`, which takes a number of calls and says whether all
  /// launches waited: twice as it is, for somebody else may have had the core, then with fewer
  /// calls. False where not all waited in any. Where a long row had to have fewer, or none held,
  /// all rows have from then on, short ones as well: two lengths tell a line only where they differ
  /// by half.
  bool fit(unsigned calls, bool is_long, const std::function<bool(unsigned)>& waits);

private:
  unsigned most_ = most_gated;
  bool is_shortened_ = false;
};

/// Between the calls of a row. They take places of the queue that a gate fills, beside launches:
/// a row of half as many calls takes half.
enum class fences : unsigned char { none, all_calls, half_calls };

enum class pair_outcome : unsigned char { counts, gate_lost, ended };

/// Thread safety: none.
class pair_taking {
public:
  /// Failures of the gate, over all rows, by which it is lost.
  static constexpr int gate_trials = 3;

  /// Takes a pair with contents of one kind by `make`, which makes one and says nothing when timing
  /// cannot go on. A pair of which the gate failed is taken again with the same kind, and nothing
  /// of it counts: its outputs may be wrong, and nobody is blamed for that. One of another kind
  /// than the task's own, 0, that is longer than the `pairs` with that is taken again, and the
  /// shorter rows count: there are too few to tell who was disturbed.
  pair_outcome take(size_t kind, const std::vector<row_pair>& pairs,
                    const std::function<std::optional<made_pair>()>& make, row_pair& into);

  /// Takes a pair of rows of calls apart with the task's own contents. The first that fails may
  /// have filled the queue: it is taken again with half the calls, as all after it have them. No
  /// other failure is free, and none leaves a row out: by so few rows nobody would be charged.
  /// Without a gate nothing fills a queue.
  pair_outcome take_apart(bool is_gated,
                          const std::function<std::optional<made_pair>(fences)>& make,
                          row_pair& into);

  /// Counts a failure of the gate, in whichever row. True when the gate is lost.
  bool fails() noexcept { return ++failures_ >= gate_trials; }

private:
  int failures_ = 0;
  fences fences_ = fences::all_calls;
};

} // namespace kernelmill
