#pragma once

#include <string>

namespace kernelmill::commands {

/// docs/reference/tools.md.
std::string tools_page();

} // namespace kernelmill::commands
