#pragma once

// MultiKernelBench's problems as tasks: KernelBench's form, one folder a category. Some have cases
// in a JSON file beside them, one a line; these become the shapes of one task.

#include <string>

#include "launch/import/suites.hpp"

namespace kernelmill {

/// Reads reference/CATEGORY/*.py of a checkout, or of its `reference` folder. `--shapes N`: most
/// shapes of a task. Refuses problems that need an NPU, and cases that no task can state.
expected<suite_reading> read_multikernelbench(const std::string& path,
                                              const suite_options& options);

} // namespace kernelmill
