#pragma once

// Kinds of contents that are checked and not timed: contents tell the candidate which those are,
// and whoever is right and slow there would be paid as if it were fast.

#include <functional>
#include <optional>
#include <vector>

#include "gpu/referee/row_arithmetic.hpp"

namespace kernelmill {

/// A row of a few calls; nothing where it could not be timed by the clock that is paid.
using looked_row = std::optional<row_times>;

class kind_looks {
public:
  /// How much longer than on the task's own contents a call may take.
  static constexpr double slow = 1.25;

  void saw(size_t kind, looked_row row) { seen_.push_back({kind, std::move(row)}); }
  void forget() { seen_.clear(); }

  /// Kinds of which the row that was seen takes too long, and one more by `again` does: those are
  /// to be timed. `usual`: seconds of a call on the task's own contents, of all its rows. Judged
  /// when these are over, so no single one of them can be made long to hide others. Nothing when
  /// `again` says that timing cannot go on.
  std::optional<std::vector<size_t>>
  slow_kinds(double usual, const std::function<double(size_t, const row_times&)>& seconds_a_call,
             const std::function<std::optional<looked_row>(size_t)>& again) const;

private:
  struct look {
    size_t kind;
    looked_row row;
  };
  std::vector<look> seen_;
};

} // namespace kernelmill
