#pragma once

// Whether what candidates are built with builds: sources of ours, by the flags of candidates, as a
// failed build of a candidate is held against them.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/machine/python.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct compiler_probe {
  std::string name; ///< "C++", "CUDA", "device", "HIP", "torch"
  std::string made; ///< what was built, where it was
  std::string cost; ///< of a failure
  std::optional<error> failure;
};

/// g++ and what else this machine has of nvcc, NVRTC and hipcc. Nothing where nothing can be
/// started in a sandbox. `before` gets the name of each before it builds, which may take seconds.
std::vector<compiler_probe>
probe_compilers(const std::function<void(const std::string&)>& before = {});

/// An extension for torch, for an interpreter that has it.
std::optional<compiler_probe> probe_torch_extension(const found_python& python);

} // namespace kernelmill
