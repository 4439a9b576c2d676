#pragma once

// INTERNAL to launch/server/page: reads what a reader will ask for first, while nothing is asked.

#include "launch/analysis/watch/world.hpp"
#include "launch/server/page/answers.hpp"
#include "launch/server/page/kept_runs.hpp"

namespace kernelmill::page {

/// Each call reads one run into `kept`: those that no process writes to, the newest first, as long
/// as their stores are not above 1 GiB in all; then the lists over all runs, if all fitted. It
/// gives way to questions, and begins the run again that it was at. `in` and `kept` outlive it.
answers::idle_step reading_ahead(const watch::world& in, kept_runs& kept);

} // namespace kernelmill::page
