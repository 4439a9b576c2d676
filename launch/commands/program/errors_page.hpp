#pragma once

#include <string>

namespace kernelmill::commands {

/// docs/reference/errors.md, from the tables of categories.
std::string errors_page();

} // namespace kernelmill::commands
