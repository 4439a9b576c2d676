#pragma once

// Compares kernels of the library with this machine and installation.

#include <vector>

#include "launch/analysis/library/staleness.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "launch/cli/command.hpp"

namespace kernelmill::commands {

/// One for each kernel, in order. Reads --python. A backend that this machine has not leaves
/// kernels uncompared. Errors: those of helper programs that are missing.
expected<std::vector<library::staleness>> staleness_of_all(const std::vector<library::kernel>& all,
                                                           const cli::invocation& in);

} // namespace kernelmill::commands
