#pragma once

#include <string>
#include <vector>

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

/// What --policy URL|FILE says as overrides: the address of a server, or the script of a scripted
/// one. `kind_before`: policy.kind of the configuration that they go on top of. Empty: not given.
std::vector<std::string> policy_overrides(const cli::invocation& in,
                                          const std::string& kind_before);

cli::option_spec policy_option(const char* doc);

} // namespace kernelmill::commands
