#pragma once

// INTERNAL to gpu/referee: what the timed rows of a candidate on a GPU say in its record.

#include <optional>
#include <vector>

#include "gpu/referee/device/clocked_rows.hpp"
#include "gpu/referee/device/pair_taking.hpp"
#include "gpu/referee/device/timed_rows.hpp"
#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

inline constexpr double contents_slack = 60e-6; ///< seconds that quiet times may be off

struct rows_taken {
  paid_clock paid = paid_clock::call;
  clocked_rows rows[2]; ///< by call, by device
  pairs_that_wait waits;
  size_t disturbed = 0; ///< pairs that count by the clock that is paid, although others had a core
  bool gate_lost = false;
  bool is_short = false; ///< the evaluation is over, and not all kinds were timed

  const clocked_rows& paid_rows() const { return rows[paid == paid_clock::device]; }
};

/// Seconds of a call on either side.
both_seconds medians(const std::vector<timed_block>& blocks);

/// Seconds of calls, by kind, by one clock. Nothing where that clock has not measured any.
std::optional<clocked_times> times_by(paid_clock clock, const rows_taken& taken,
                                      const timed_rows& timed, const quiet_baseline& quiet);

/// Puts into the run's record what was measured, and what the rows show of who made them.
void summarize_rows(measured_run& run, const quiet_baseline& quiet, const timed_rows& timed,
                    const rows_taken& taken);

} // namespace kernelmill
