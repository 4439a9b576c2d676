#pragma once

// The runs of a head below its root: reads configurations, opens directories and stores, and leaves
// a marker in each run's directory while a head works on it, which is what the next head looks for,
// however this one ended.

#include <memory>
#include <string>

#include "actors/head/run_host.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

/// Whether a head works on the run of a directory, or did when it ended.
bool is_marked_by_head(const std::string& directory);

/// The runs below `root`; `log` hears their warnings.
std::shared_ptr<run_host> make_head_runs(std::string root, logger log);

} // namespace kernelmill
