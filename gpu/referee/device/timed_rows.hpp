#pragma once

// Rows of a candidate and of the baseline, one at a time: who is let go on, what is checked when a
// row is over, and who is blamed.

#include <algorithm>
#include <vector>

#include "gpu/referee/device/clocked_rows.hpp"
#include "gpu/referee/device/device_rows.hpp"
#include "gpu/referee/device/pair_taking.hpp"
#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

/// Functions that return false have put into the run's record why it is over.
/// Thread safety: none.
class timed_rows {
public:
  timed_rows(measured_run& run, const quiet_baseline& quiet);

  candidate_process& process() { return run_.candidate.process(); }
  candidate_process& baseline() { return run_.prepared.baseline()->process(); }

  const device_rows& candidates() const noexcept { return candidate_rows_; }
  unsigned sets() const { return candidate_rows_.sets(); }
  void use(unsigned sets);

  row_order order_of(paid_clock clock, size_t kind, bool is_long);

  /// As many calls as look_calls(), or some fewer.
  row_order few_calls(paid_clock clock, size_t kind);

  /// Again where launches did not wait, a few times.
  bool reference_row(row_order order, row_times& into);
  bool candidate_row(const row_order& order, row_times& into); ///< checked

  /// When timing is over.
  void let_both_go_on();

  /// Whether the baseline's latest row was right; else it is the task's fault.
  bool reference_is_right();

  /// A long row of each, in an order that nobody knows.
  bool long_rows(paid_clock clock, size_t kind, row_pair& into, fences between);

  /// Seconds until contents are there while no candidate is.
  double quiet_contents(size_t kind) const;

  /// Whether the candidate's launches did not wait in its latest row that had a gate.
  bool gate_failed() const noexcept { return gate_failed_; }

  /// Whether the baseline's did not in its latest row, also with fewer calls.
  bool reference_was_forced() const noexcept { return reference_was_forced_; }

  /// Rows behind a gate have a quarter of the calls from now on.
  void shorten_gated() { room_.shorten(sets()); }
  bool is_gate_shortened() const noexcept { return room_.is_shortened(); }

  /// Calls of the shortest row that pairs have behind a gate.
  unsigned fewest_gated() const { return long_calls(sets_by(paid_clock::device), 0); }

  /// Device code has as many as its program can queue.
  void limit_gated(unsigned calls) { room_.limit(calls); }

  void forget_longer();

  /// Seconds that contents came later than when it was quiet, of rows since forget_longer().
  const std::vector<double>& candidate_longer() const noexcept { return candidate_longer_; }
  const std::vector<double>& reference_longer() const noexcept { return reference_longer_; }

  /// Seconds of a processor that the candidate took while it was stopped, by row.
  const std::vector<double>& worked_while_stopped() const noexcept { return worked_while_stopped_; }

private:
  unsigned sets_by(paid_clock clock) const {
    return clock == paid_clock::device ? room_.of(sets()) : sets();
  }
  bool blame_task(const std::string& cause);
  bool blame_ending();
  void note_contents(std::vector<double>& into, size_t kind, double seconds) const;

  measured_run& run_;
  const quiet_baseline quiet_;
  device_rows candidate_rows_;
  device_rows reference_rows_;
  std::vector<double> candidate_longer_;
  std::vector<double> reference_longer_;
  std::vector<double> worked_while_stopped_;
  queue_room room_;
  bool gate_failed_ = false;
  bool reference_was_forced_ = false;
};

} // namespace kernelmill
