#pragma once

// Keeps one call's work on a GPU apart from the next one's. Calls of a row follow one another, as
// the steps of a model do; a library that gives each call a stream of its own would have them run
// side by side, and be paid for a throughput that no caller sees.

#include "gpu/cuda/driver.hpp"

namespace kernelmill::cuda {

/// Lies in a process that may be a candidate's: it orders what honest code gives to the GPU, and is
/// no wall. Thread safety: none.
class call_fence {
public:
  explicit call_fence(const driver& cuda) : cuda_(cuda) {}

  /// What the primary context of GPU 0 is given from now on, on any stream, begins when all is over
  /// that it was given before. The calling thread does not wait. Where the driver has no such order
  /// for contexts (before CUDA 12.5), it holds for streams that the default stream waits for.
  /// Returns the driver's error; 0 is none. Where it is refused, as while a stream is captured,
  /// nothing is kept apart.
  result set();

private:
  bool make();
  result order_context();

  const driver& cuda_;
  context context_ = nullptr;
  event event_ = nullptr;
  result last_ = 0;                // of making both
  bool has_context_orders_ = true; // as far as is known
};

} // namespace kernelmill::cuda
