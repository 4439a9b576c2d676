#pragma once

// Compiles what tasks bring along before any GPU is asked for, so that none waits for a compiler.

#include <string>
#include <vector>

#include "launch/machine/backend.hpp"

namespace kernelmill {

class spawner;

/// Builds reference.cpp, reference.cu and baseline.cu of each task that has them, on all cores,
/// into the referees' cache. Does nothing on the CPU backend, where compilers and slots share the
/// cores anyway. What fails is told by the referee that wants it.
void build_ahead(spawner& processes, const chosen_backend& backend, const std::string& cache,
                 const std::vector<std::string>& task_directories);

} // namespace kernelmill
