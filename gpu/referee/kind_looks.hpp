#pragma once

// INTERNAL to gpu/referee: kinds of contents that are checked and not timed. Contents tell the
// candidate which those are, and whoever is right and slow there would be paid as if it were fast.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace kernelmill {

/// A few calls on a kind.
struct kind_look {
  size_t kind = 0;
  std::optional<double> seconds; ///< of a call; nothing where the clock that is paid saw none
};

/// How much longer than on the task's own contents a call may take.
inline constexpr double slow_look = 1.25;

/// Kinds of which the look takes too long, and one more by `again` does: those are to be timed.
/// `usual`: seconds of a call on the task's own contents, of all its rows. Judged when these are
/// over, so no single one of them can be made long to hide others. Nothing when `again` says that
/// timing cannot go on.
std::optional<std::vector<size_t>>
slow_kinds(const std::vector<kind_look>& seen, double usual,
           const std::function<std::optional<kind_look>(size_t)>& again);

} // namespace kernelmill
