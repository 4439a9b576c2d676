#pragma once

// head.json of a run's directory: a head has the run, and it is not over. It names the lane of the
// nodes that do the run's work.

#include <string>

#include "storage/run_directory.hpp"

namespace kernelmill {

std::string head_mark_of(const std::string& directory);

/// Nodes do the run's work then, not the machine on which its process is.
bool is_of_head(const run_directory& run);

} // namespace kernelmill
