#pragma once

// Candidate processes that are up before there is a candidate: starting one behind all the walls
// takes 15 ms, and nobody shall wait for that. Each is used once.

#include <deque>

#include "gpu/referee/candidate_process.hpp"

namespace kernelmill {

/// Thread safety: none.
class candidate_pool {
public:
  candidate_pool(sandbox& walls, candidate_options options, size_t size)
      : walls_(walls), options_(std::move(options)), size_(size) {}

  /// Returns a process that is up; starts one when there is none.
  expected<candidate_process> take();

  /// Starts what is missing, without waiting for it. Call it when nobody is being timed.
  void refill();

  /// Waits until nothing in the pool is still starting, so that it disturbs no timing.
  void settle();

  unsigned threads() const noexcept { return options_.threads; }

private:
  sandbox& walls_;
  candidate_options options_;
  size_t size_;
  std::deque<candidate_process> waiting_;
};

} // namespace kernelmill
