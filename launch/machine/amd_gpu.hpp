#pragma once

// What this machine shows of AMD GPUs, without any library of AMD's.

#include <string>

namespace kernelmill {

/// The architecture of the first GPU that the kernel's driver lists ("gfx90a"); empty when there is
/// none.
std::string amd_architecture(const std::string& topology = "/sys/class/kfd/kfd/topology/nodes");

/// "libamdhip64.so is found, /dev/kfd is not": what running HIP would need.
std::string amd_runtime_text();

} // namespace kernelmill
