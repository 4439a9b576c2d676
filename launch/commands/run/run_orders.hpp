#pragma once

// Orders to the process that works on a run of this machine.

#include <string>

#include "launch/cli/command.hpp"
#include "messages/error.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

/// Says that an order was taken.
void say_order(const cli::invocation& in, const run_directory& run, const std::string& verb,
               const std::string& said);

} // namespace kernelmill::commands
