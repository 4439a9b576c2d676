#pragma once

// A build of HIP for looking at: the assembly of the GPU's half, with a table of lines.

#include <string>

#include "gpu/sandbox/sandbox.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct gcn_build {
  bool compiled = false;
  std::string log;
  std::string assembly;
};

inline constexpr const char* listed_hip_name = "kernel.hip";

/// Compiles in the sandbox for "gfx90a" or another. A source that does not compile is an answer.
/// Fails with "toolchain_missing" without `hipcc`, and with "unsupported_architecture" where it
/// does not know the architecture.
expected<gcn_build> build_gcn(sandbox& walls, const std::string& hipcc, const std::string& source,
                              const std::string& architecture);

} // namespace kernelmill
