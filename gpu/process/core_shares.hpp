#pragma once

// Which cores of a machine with GPUs compilers keep off. A call of some 100 us is timed by a
// process that waits for the GPU and one that waits for that process: where either shares its core,
// it loses whole slices of the scheduler's time, some 3 ms, and which of baseline and candidate
// that hits stays so for a whole evaluation.

#include <functional>
#include <vector>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

struct core_shares {
  /// For each GPU the core of its referee and that of the processes that it times; empty where
  /// there are none to spare.
  std::vector<std::vector<int>> timed;
  std::vector<int> compilers;    ///< where these run; empty: on all
  std::vector<descriptor> marks; ///< by which other nodes of this machine know whose they are
};

/// Cores below which nobody has one for himself, for each GPU.
inline constexpr size_t fewest_cores_a_gpu = 4;

/// Divides `all`: two cores for each GPU, from the last one down, so that the two share a physical
/// core with one another where cores do. Of those that `claim` refuses another node has taken
/// possession, so nobody here works there.
core_shares share_cores(const std::vector<int>& all, size_t gpus,
                        const std::function<bool(int)>& claim);

/// The same of the cores of this process, with marks on those that are taken.
core_shares share_cores(size_t gpus);

/// Those on which this process may run.
std::vector<int> cores_of_this_process();

} // namespace kernelmill
