#pragma once

// The library of kernels from what is known of each run, without reading the runs again.

#include <vector>

#include "launch/analysis/library/kernel_library.hpp"

namespace kernelmill::library {

/// `runs`: what kernels::best() gave for each run alone, in the order of the runs. Returns what one
/// `kernels` to which all of them were added would give.
std::vector<kernel> best_over_runs(const std::vector<std::vector<kernel>>& runs);

} // namespace kernelmill::library
