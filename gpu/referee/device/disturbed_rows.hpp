#pragma once

// Which rows say nothing, because other programs made them longer.

#include <vector>

namespace kernelmill {

/// Rows of one side with contents of one kind. Other programs only ever make one longer, whosever
/// it is.
struct side_rows {
  std::vector<double> seconds; ///< of a call
  std::vector<double> calls;   ///< of each row
  double usual = 0;            ///< lower quartile of `seconds`
  double least = 0;
};

side_rows side_of(std::vector<double> seconds, std::vector<double> calls);

/// Which pairs of rows count: none of which either is plainly longer than usual. Of the candidate's
/// as many are left out as the baseline's are longer by so many seconds, and what chance adds.
/// Where more are longer by a little, only those are left out that are longer by far; where more
/// are so, it is slow now and then by itself, and all of its rows count. Where fewer than three
/// pairs would be left, rows of either side are left out by far only, or none. `as_it_came` is the
/// baseline with first launches as late as they were, `reference` with the usual one. REQUIRES: as
/// many rows of each.
std::vector<bool> undisturbed(const side_rows& candidate, const side_rows& reference,
                              const side_rows& as_it_came);

/// What a call of such rows usually takes: of a few the lower quartile, of more the median of those
/// that are not plainly longer.
double usual_of(const side_rows& x);

/// The same of a candidate, of whose rows all count where more are plainly longer than the
/// baseline's as they came.
double usual_beside(const side_rows& candidate, const side_rows& as_it_came);

/// As usual_of(), of rows that no late launch makes longer.
double usual_of_few(std::vector<double> seconds);

} // namespace kernelmill
