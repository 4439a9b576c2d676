#pragma once

#include <string>
#include <vector>

#include "launch/config/load.hpp"

namespace kernelmill::commands {

/// Sorts the words after `run` into files and overrides, and adds the environment.
config_sources sources_of(const std::vector<std::string>& words);

} // namespace kernelmill::commands
