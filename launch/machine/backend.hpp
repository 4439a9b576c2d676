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

/// The target architecture without --arch and without a GPU.
inline constexpr const char* usual_architecture = "sm_90";
inline constexpr const char* usual_amd_architecture = "gfx90a";

struct chosen_backend {
  std::string name = "cpu";    ///< "cpu", "cuda" or "hip"
  std::vector<cuda::gpu> gpus; ///< unless "cpu": at least one, unless `architecture` is set
  std::string architecture;    ///< what to compile for; empty: that of the GPUs
  std::string python = {};     ///< path of found_python; empty: no task of the contract `torch`
  bool python_at_once = true;  ///< slots start it before the first task that needs it
  std::string hardware = {};   ///< of other machines that judge; empty: this one does

  /// Of the code that is built: `architecture`, else that of the GPUs; empty for "cpu".
  std::string target() const {
    return architecture.empty() && !gpus.empty() ? gpus.front().architecture : architecture;
  }

  /// Whether its GPUs are NVIDIA's: for "hip" AMD's header layer is used.
  bool on_nvidia() const { return target().starts_with("sm_"); }

  /// Sets what compilers and referees must know of it. REQUIRES: index < gpus.size() unless "cpu".
  void apply(toolchain_options& options) const;
  void apply(referee_options& options, size_t index) const;
};

/// "NVIDIA H200 (sm_90)", or the processor's name: what a prompt says of the machine.
std::string hardware_text(const chosen_backend& x);

/// `wanted` is "auto", "cpu", "cuda" or "hip"; auto is cuda where there are a GPU and nvcc. HIP
/// takes AMD's GPUs where there are any and libamdhip64, else NVIDIA's. Of these GPUs are those
/// that CUDA_VISIBLE_DEVICES shows, in its order. `only` names one of them by NVML's index; below
/// 0: all.
expected<chosen_backend> choose_backend(const std::string& wanted, int only = -1);

/// Whether an error of choose_backend() says that this machine has no GPU.
bool lacks_gpu(const error& why);

/// The same error for the user who named `file`: CUDA's source gets no advice to judge it on a CPU.
error for_file(error why, const std::string& file);

/// The same for a build that is not run: with an architecture ("sm_90", "gfx90a") no GPU is needed,
/// and "auto" goes by it; "hip" is a backend too. Without one it is that of this machine's GPU, or
/// the usual one.
expected<chosen_backend> choose_compiler(const std::string& wanted, const std::string& architecture,
                                         int only = -1);

/// Fails with "toolchain_missing" where this machine has not the compiler `path`. Said before a run
/// begins, since a run without a compiler ends with nothing but faults of the machine.
expected<void> check_compiler(const std::string& path);

} // namespace kernelmill
