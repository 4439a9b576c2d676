#pragma once

// GPU MODE's problems as tasks: task.yml names the shapes, reference.py has the function, its
// inputs and its check. An answer defines `custom_kernel`.

#include <string>

#include "launch/import/suites.hpp"

namespace kernelmill {

/// Reads every folder below `path` (a checkout of reference-kernels, its `problems`, or one
/// problem) that has a task.yml. `--shapes N`: most shapes of a task.
expected<suite_reading> read_gpu_mode(const std::string& path, const suite_options& options);

} // namespace kernelmill
