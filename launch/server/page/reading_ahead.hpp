#pragma once

// INTERNAL to launch/server/page: reads what a reader will ask for first, while nothing is asked.

#include <functional>

#include "launch/analysis/watch/world.hpp"
#include "launch/server/page/kept_runs.hpp"

namespace kernelmill::page {

/// Each call reads one run into `kept`: those that no process writes to, the newest first, as long
/// as their stores are not above 1 GiB in all; then the lists over all runs, if all fitted. False:
/// there is nothing more. `in` and `kept` outlive it.
std::function<bool()> reading_ahead(const watch::world& in, kept_runs& kept);

} // namespace kernelmill::page
