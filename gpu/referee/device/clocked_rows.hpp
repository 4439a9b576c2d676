#pragma once

// Rows of a candidate and of the baseline by one clock, and what they say together.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gpu/referee/row_arithmetic.hpp"
#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

/// One row of each, with contents of one kind.
struct row_pair {
  size_t kind = 0;
  row_times reference;
  row_times candidate;
};

struct clocked_rows {
  std::vector<row_pair> pairs;
  std::vector<row_times> baseline; ///< with the task's own kind of contents, long and short
  std::vector<row_pair> apart;     ///< with that kind, of calls that were kept apart
};

struct clocked_times {
  std::vector<kind_blocks> kinds;
  row_line line;
  double intercept = 0;   ///< that was subtracted
  double share = 1;       ///< of the baseline's times that is believed
  double apart = 0;       ///< seconds of a call of the candidate's that were kept apart; 0: unknown
  double beside = 0;      ///< seconds of a call that the candidate was charged for: beside_others()
  double most_beside = 0; ///< the same, if nothing but calls became longer in its rows
  double cost = 0;        ///< seconds of a call that the baseline's take more when kept apart

  /// Seconds of a row of the baseline that are no call's, but more than may be subtracted: it
  /// became slower since no candidate was there, or a candidate keeps it longer.
  double not_subtracted() const { return std::max(line.intercept - intercept, 0.0); }

  /// Seconds of a call in a row of the baseline, with the usual first launch, and without what is
  /// not subtracted: nobody shall be paid for that.
  double call_of_baseline(const row_times& x) const;
};

/// Seconds of calls, by kind. `quiet` is what the baseline's rows were while no candidate was
/// there, `most_contents` how long the contents of a kind may take in the baseline's rows. Nothing
/// while the baseline has no rows of two lengths.
std::optional<clocked_times> times_of(const clocked_rows& rows, const row_line& quiet,
                                      const std::vector<std::string>& kinds,
                                      const std::function<double(size_t)>& most_contents);

/// Whether a row of a pair is plainly longer a call than most with the task's own contents.
bool is_longer(const row_pair& x, const std::vector<row_pair>& pairs);

/// Takes over the rows of `again` that are shorter a call.
void keep_shorter(row_pair& x, const row_pair& again);

/// By how much a speedup may be too small because of what is not subtracted, as a factor.
double most_withheld(const clocked_times& times, const std::vector<row_pair>& pairs);

/// Standard deviation of the logarithm of the speedup that comes from what the intercept is unsure
/// of: it changes both times, but not by the same share, and its first launch the candidate's
/// alone.
double spread_of(const clocked_times& times, const std::vector<row_pair>& pairs);

} // namespace kernelmill
