#pragma once

// One batch of calls, as it is ordered and as it was seen from outside. Seconds.

#include <cstddef>
#include <vector>

namespace kernelmill::timing {

enum class batch_form : unsigned char {
  nominal, ///< many calls on the task's own inputs
  mixed,   ///< many calls, which take several patterns of inputs in turn
  pattern, ///< many calls on one pattern besides the task's own
  single,  ///< one call alone on the task's own inputs
  apart,   ///< nominal, but each call's work begins when that of the call before is over
};

struct batch_order {
  batch_form form = batch_form::nominal;
  std::vector<size_t> patterns{0}; ///< of inputs; 0 is the task's own
};

struct batch_sample {
  unsigned calls = 0;
  double fill = 0;        ///< until the inputs were there and caches were flushed
  double out = 0;         ///< from the release of the inputs until samples of all outputs were seen
  double inside = 0;      ///< by the process's own events: believed of the baseline only
  bool disturbed = false; ///< others had the core or the GPU: it says nothing
};

/// The baseline's batch and the candidate's, with identical inputs.
struct batch_pair {
  batch_order order;
  batch_sample baseline;
  batch_sample candidate;
};

enum class batch_side : unsigned char { baseline, candidate };

/// Who makes batches: a slot of a GPU or of a CPU, with its processes.
class batch_maker {
public:
  virtual ~batch_maker() = default;

  /// Makes one batch. The batches of a pair have identical inputs: `pair` is its number. False when
  /// the evaluation is over, with its reason in the record.
  virtual bool make(batch_side side, const batch_order& order, size_t pair, batch_sample& into) = 0;

  /// Whether the time of the evaluation is over.
  virtual bool expired() const = 0;
};

} // namespace kernelmill::timing
