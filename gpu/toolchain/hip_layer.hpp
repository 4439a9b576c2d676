#pragma once

// HIP for NVIDIA GPUs: AMD's header layer, which gives HIP's names the meaning of CUDA's, and what
// of ours it takes to use it with nvcc and NVRTC of today.

#include <optional>
#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct hip_layer {
  std::string ours;    ///< folder of kernelmill_hip.h
  std::string headers; ///< folder that holds AMD's hip/nvidia_detail
  std::string version; ///< of those headers: "5.2"
};

/// Finds AMD's headers in $HIP_PATH, $ROCM_PATH, `ours`, /usr and /opt/rocm. Fails with
/// "toolchain_missing" (infrastructure), which names the package.
expected<hip_layer> find_hip_layer(const std::string& ours);

/// What makes nvcc take a source in HIP, whatever its name ends in.
std::vector<std::string> nvcc_flags(const hip_layer& x);

/// What makes NVRTC take device code in HIP.
std::vector<std::string> nvrtc_flags(const hip_layer& x);

/// What the sandbox must show of the machine for it.
std::vector<bind_mount> mounts_of(const hip_layer& x);

/// Whether an architecture is one of AMD's ("gfx90a").
inline bool is_amd_architecture(const std::string& x) {
  return x.starts_with("gfx");
}

/// What device code is built for.
struct build_target {
  std::string backend = "cpu"; ///< or "cuda", "hip": the language of sources
  std::string architecture;    ///< "sm_90", "gfx90a"; empty: a CPU
  std::string hip_folder;      ///< of kernelmill_hip.h, for HIP on NVIDIA GPUs
};

/// The layer of a target that needs one; nothing of the others. Fails as find_hip_layer() does.
expected<std::optional<hip_layer>> layer_of(const build_target& x);

} // namespace kernelmill
