#pragma once

// The documents of `kernelmill compare` as people read them.

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace kernelmill::commands {

/// `tasks`: rows of the table of tasks, those that differ most.
std::string comparison_text(const nlohmann::ordered_json& document, bool colour, size_t tasks);

} // namespace kernelmill::commands
