#pragma once

// The row of `kernelmill kernel export`.

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

cli::command kernel_export_row();

} // namespace kernelmill::commands
