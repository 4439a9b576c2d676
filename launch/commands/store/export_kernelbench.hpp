#pragma once

#include "launch/commands/store/export_runs.hpp"

namespace kernelmill::commands {

/// `export --form kernelbench`: one run as files that KernelBench's analysis reads.
expected<int> export_kernelbench(const cli::invocation& in, const exported_runs& runs);

} // namespace kernelmill::commands
