#pragma once

// robust-kbench's tasks as tasks: a function, a module that calls it, and configurations of both.
// Its backward functions become tasks of their own, whose outputs are gradients.

#include <string>

#include "launch/import/suites.hpp"

namespace kernelmill {

/// Reads every folder below `path` (a checkout, its `tasks`, or one task) that has func_forward.py.
/// `--shapes N`: most configurations of a task.
expected<suite_reading> read_robust_kbench(const std::string& path, const suite_options& options);

/// A CUDA answer of that suite, a source with pybind's `forward` or `backward`, as a module that
/// takes the place of the function. `problem`: problem.py of an imported task.
std::string robust_kbench_answer(const std::string& problem, const std::string& source);

} // namespace kernelmill
