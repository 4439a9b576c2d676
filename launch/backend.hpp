#pragma once

// Which backend "auto" is on this machine, and on which GPUs.

#include <string>
#include <vector>

#include "gpu/cuda/devices.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/toolchain/toolchain.hpp"

namespace kernelmill {

/// Contexts that a referee of many candidates makes ahead: making one takes as long as judging.
inline constexpr unsigned gpu_pool = 4;

struct chosen_backend {
  std::string name = "cpu";    ///< "cpu" or "cuda"
  std::vector<cuda::gpu> gpus; ///< of "cuda": at least one

  /// Sets what compilers and referees must know of it. REQUIRES: index < gpus.size() for "cuda".
  void apply(toolchain_options& options) const;
  void apply(referee_options& options, size_t index) const;
};

/// `wanted` is "auto", "cpu" or "cuda"; auto is cuda where there are a GPU and nvcc. `only` names
/// one GPU by NVML's index; below 0: all.
expected<chosen_backend> choose_backend(const std::string& wanted, int only = -1);

} // namespace kernelmill
