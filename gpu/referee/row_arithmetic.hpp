#pragma once

// From the times of rows of calls to what is paid. A row takes a fixed time, of which a GPU's turn
// from one process to another is the largest part, and a time for each call. What is fixed is
// learned from the baseline, which is trusted; nothing that a candidate does is ever subtracted.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kernelmill {

/// Seconds.
struct row_times {
  unsigned calls = 0;
  double contents = 0;  ///< until the contents were there
  double done = 0;      ///< from then until the process said that it was done
  double gap = 0;       ///< from there until the referee had samples of all outputs
  double launched = 0;  ///< from when contents were there until the first call had returned; behind
                        ///< a gate 0, for it had before
  double by_events = 0; ///< by CUDA events, of device code behind a gate
  double waited = 0;    ///< for a core, by the process and by the referee, until outputs were seen

  /// From the first moment at which all contents were there until outputs were seen.
  double row() const noexcept { return done + gap; }

  /// Of these, what is left when the first call has returned.
  double after_launch() const noexcept { return row() - launched; }
};

/// Seconds of a call that keeping it apart from others may take; an H200 takes 0.4 to 1.3 us.
inline constexpr double most_to_keep_apart = 2e-6;

/// Seconds of a row are `intercept` + calls * `call`.
struct row_line {
  double intercept = 0;
  double call = 0;
  double error = 0;  ///< standard error of the intercept, without that of `launch`
  double launch = 0; ///< of the intercept, until the first call of a long row has returned
  double launch_error = 0;
  double to_keep_apart = most_to_keep_apart; ///< to_keep_apart()
};

/// Whether a process, or the referee, was ready for plainly longer than `usual` in a row and had no
/// core: others had it, and what the row took says nothing.
bool lost_its_core(const row_times& x, double usual);

/// What rows of a baseline wait where nobody disturbs them: being woken takes a moment, too.
double usual_wait(const std::vector<row_times>& rows);

/// Calls that wait behind a gate, at most: the driver's queue has some 1,000 places, and a call may
/// launch several times.
inline constexpr unsigned most_gated = 240;

/// Times that a row of a baseline is tried whose launches did not wait.
inline constexpr int gate_tries = 4;

/// Sets for rows that take 1.5 ms or more where there are as many: `fastest` and `slowest` are
/// seconds of a call of the two sides.
unsigned sets_for(double fastest, double slowest, unsigned most);

/// Calls of a long row, from a random number: three quarters of the sets, up to all but one.
unsigned long_calls(unsigned sets, uint64_t drawn);

/// Of a short one, which only the baseline has. It tells what a row has besides calls, the better
/// the fewer calls are in it: these differ by some parts in a thousand of what they take.
unsigned short_calls(unsigned sets);

/// Of a look at one kind of contents, at most.
unsigned look_calls(unsigned sets);

/// Three quarters of them, up to three of which are all.
unsigned fewer_calls(unsigned calls);

/// From rows of the baseline, of two lengths or more: medians of slopes between rows whose lengths
/// differ by half of the longest or more, then the median of what is left. Nothing where no two
/// do. How soon a process makes its first launch differs from row to row by more than all else, so
/// both are those of what comes after it, and the median of long rows' launches that are not late
/// is added.
std::optional<row_line> fit_line(const std::vector<row_times>& rows);

/// Seconds by which a first launch is late: most are less late, and a few 0.15 ms.
inline constexpr double late_launch = 40e-6;

/// A row of the baseline as it is with the usual first launch.
row_times at_usual_launch(row_times x, const row_line& line);

/// Of rows that nobody works against, the least few of each of two lengths: others only ever make a
/// row longer, by a core or a processor of the machine below that they take. All of a length that
/// has no more. REQUIRES: no gate was forced in any, which makes a row shorter.
std::vector<row_times> least_rows(const std::vector<row_times>& rows);

/// Whether there are as many rows as least_rows keeps, of each length that is there.
bool are_enough(const std::vector<row_times>& rows);

/// Whether these are alike, so that a line through them is known: seconds that one takes longer
/// than another of its length are a small part of a long row.
bool are_alike(const std::vector<row_times>& least);

/// The intercept that may be subtracted: what the baseline shows now, but not much more than it
/// showed while no candidate was there who could make it longer.
double free_intercept(const row_line& now, const row_line& quiet);

/// Seconds of one call of a row. What is subtracted is never more than 4/5 of the row, and what is
/// charged for work before the clock is added.
double call_seconds(const row_times& x, double intercept, double charged);

/// The baseline's time of a call is not believed beyond this multiple of what it was while no
/// candidate was there: a card that heats up gets slower by less. What a candidate can gain by
/// slowing its baseline in a way that nobody finds is no more than that.
inline constexpr double believed_slowdown = 1.05;

/// By what the baseline's times are multiplied: 1, or less where they are not believed.
double believed_share(double call_now, double call_quiet);

/// Seconds until contents were there, of the two rows of a pair, which had the same kind.
struct contents_pair {
  double candidate = 0;
  double reference = 0; ///< not more than without a candidate
};

/// What each pair's candidate is charged, because it made the contents come later: it must have
/// worked on what it saw of them. In the median of all pairs beyond noise, or in one row beyond
/// nearly all of the baseline's. `usual` are the baseline's own times with one kind of contents. Of
/// their spread no more than `most_spread` seconds is noise in the median: a candidate that leaves
/// work on the GPU makes some of them longer.
std::vector<double> charges(const std::vector<contents_pair>& pairs,
                            const std::vector<double>& usual, double most_spread);

/// Seconds of a call: of calls one after the other as they come, and of calls each of which begins
/// when all work of the one before is over.
struct both_ways {
  double as_they_come = 0;
  double apart = 0;
};

/// Seconds of a call that keeping calls apart takes, at most, by rows of the baseline's that were
/// kept apart while no candidate was there who could make these longer.
double to_keep_apart(const std::vector<row_times>& apart, const row_line& line);

/// Seconds of a call of a candidate that lie beside other calls' work, which no caller gains by:
/// its calls apart, less what keeping them apart costs the baseline, but no more than `most_cost`,
/// less its calls as they come. 0 where that is no more than noise.
double beside_others(const both_ways& candidate, const both_ways& baseline, double most_cost);

} // namespace kernelmill
