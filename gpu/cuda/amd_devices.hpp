#pragma once

// Which AMD GPUs there are, and how they are doing, asked of the kernel's driver by its files: no
// library of AMD's, and no context.

#include <string>
#include <vector>

#include "gpu/cuda/devices.hpp"

namespace kernelmill::cuda {

inline constexpr const char* amd_topology = "/sys/class/kfd/kfd/topology/nodes";

/// In the order of the topology, which is that of ROCR_VISIBLE_DEVICES. `node` is the render node,
/// "/dev/dri/renderD128".
std::vector<gpu> amd_gpus(const std::string& topology = amd_topology);

/// Whether a device node is one of an AMD GPU.
inline bool is_amd_node(const std::string& node) {
  return node.starts_with("/dev/dri/");
}

/// Clocks, heat and power now, of the files of the GPU's card; what these do not tell is 0.
gpu_state amd_state(const gpu& which, const std::string& cards = "/sys/class/drm");

} // namespace kernelmill::cuda
