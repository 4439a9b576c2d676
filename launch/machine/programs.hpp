#pragma once

// Programs of this machine, and what they say of themselves.

#include <string>

#include "gpu/process/process.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Returns the path of a program on PATH; empty when there is none.
std::string on_path(const std::string& name);

/// What a program prints to stdout, 64 KiB at most; empty when it does not run.
std::string output_of(spawner& processes, const std::string& program, const std::string& argument);

expected<spawner> start_spawner();

} // namespace kernelmill
