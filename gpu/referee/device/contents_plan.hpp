#pragma once

// Which kinds of contents the timed rows of a task have on a GPU, and in which order.

#include <functional>
#include <string>
#include <vector>

#include "gpu/referee/device/device.hpp"
#include "gpu/task/task.hpp"

namespace kernelmill {

struct contents_kind {
  std::string name;               ///< "normal", "q=signs k=signs"
  std::vector<std::string> fills; ///< by argument: its distribution; empty for what is not filled
};

/// Those of timed_kinds() that a GPU can make: the task's own first.
std::vector<contents_kind> kinds_of_contents(const task& x);

/// How an argument that is filled is made at the timed shape.
content_how content_of(const task& x, size_t argument, const contents_kind& kind);

/// The kinds of the pairs of one timing. Every other pair has the task's own; the rest take turns
/// in a secret order, `most_others` of them. The same draws make the same plan.
class contents_plan {
public:
  static constexpr size_t most_others = 6;

  /// `unfit`: kinds behind the others, too near to a bound to be timed.
  contents_plan(size_t kinds, const std::function<uint64_t()>& draw, size_t unfit = 0);

  /// Index of the kind of a pair, from 0 on.
  size_t kind_of(size_t pair) const;

  /// Indices of kinds that are not timed and come in a row besides, before a pair: over the first
  /// round each of them once. What is right on those alone that are timed is found there.
  std::vector<size_t> checked_before(size_t pair) const;

  /// Pairs until each kind of the plan was there once.
  size_t round() const noexcept {
    return others_.empty() && !rest_.empty() ? 2 : 2 * others_.size();
  }

private:
  std::vector<size_t> others_;
  std::vector<size_t> rest_; // of the kinds
};

} // namespace kernelmill
