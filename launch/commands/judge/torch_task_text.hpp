#pragma once

// What `task show` and `task list` say of problems in Python alone.

#include <string>

#include "gpu/task/task.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

/// Adds suite, precision, entry, tolerance and variants.
void add_torch_head(const torch_problem& x, nlohmann::ordered_json& result);

/// The table of variants behind an empty line; nothing where there are none.
std::string variants_text(const torch_problem& x);

/// Lines of the function that answers may define, and of the suite's tolerance.
std::string suite_text(const torch_problem& x);

} // namespace kernelmill::commands
