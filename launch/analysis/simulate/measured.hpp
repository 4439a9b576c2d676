#pragma once

// What an earlier run tells of a later one: how long its stages took, without the waiting.

#include <cstdint>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::simulating {

struct measured_run {
  std::vector<double> policy, build, evaluate; ///< seconds; of builds those that were not cached
  std::vector<uint32_t> turns;                 ///< of episodes that ended
  uint64_t answers = 0, builds = 0, cached = 0, compiled = 0;

  double build_share() const;    ///< of answers that held a kernel
  double cached_share() const;   ///< of builds
  double compiled_share() const; ///< of builds
};

/// Reads all turns of a run but those that the infrastructure lost. A profile counts as time of the
/// slot. Policies say how long an answer took as the run saw it: with the wait for its window.
expected<measured_run> measure(const store& from, const std::string& run);

} // namespace kernelmill::simulating
