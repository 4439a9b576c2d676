#pragma once

// One row of the list of runs, for readers that keep the rows of runs that no process writes to.

#include <string>

#include "launch/analysis/watch/world.hpp"

namespace kernelmill::watch {

/// The row of runs_view() of a folder below the root; of one that cannot be read, its state is
/// "unreadable".
json row_of_run(const world& in, const std::string& folder);

} // namespace kernelmill::watch
