#pragma once

// A user's own model as tasks: the whole, and each submodule that takes a share of its time. A
// program in Python runs it under torch's profiler (kernelmill_torch/model_tasks.py).

#include <string>

#include "launch/import/suites.hpp"

namespace kernelmill {

/// Reads a file that defines `model()`, or what --entry names, and `inputs()`. --share: of the time
/// in percent, from which a submodule is a task. Refuses submodules that no task can state.
expected<suite_reading> read_model(const std::string& path, const suite_options& options);

/// A kernel put back into the model: the text of a module, and the task by which it is judged.
struct patched_model {
  std::string text;
  std::string whole; ///< "model/net/whole"
};

/// `kernel`: a file with an answer to a task that read_model() made; `problem`: that task's
/// problem.py; `model`: the file that it was made of. Errors: "bad_problem", "python_missing".
expected<patched_model> patch_model(const std::string& kernel, const std::string& problem,
                                    const std::string& model, const std::string& python);

} // namespace kernelmill
