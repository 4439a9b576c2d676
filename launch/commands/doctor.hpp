#pragma once

#include <string>
#include <vector>

#include "gpu/cuda/devices.hpp"

namespace kernelmill::commands {

/// `none`: it is not there, and this machine has no use for it.
enum class finding_state : unsigned char { ok, none, warn, fail };

/// One line of `kernelmill doctor`.
struct finding {
  std::string name;
  finding_state state = finding_state::ok;
  std::string detail;
  std::string cost;   ///< what does not work because of it; empty when ok
  std::string remedy; ///< the next step; empty when ok
};

using findings = std::vector<finding>;

void examine_machine(findings& out);                            ///< OS, cores, memory, limits
void examine_tools(findings& out);                              ///< compiler, helpers, python
void examine_torch(findings& out);                              ///< what tasks of torch need
void examine_sandbox(findings& out);                            ///< each layer, by using it
void examine_counters(findings& out);                           ///< perf events
void examine_disk(findings& out, const std::string& directory); ///< file system and space

/// Everything about GPUs that a machine may have; what is empty was not found.
struct accelerator_facts {
  std::vector<cuda::gpu> gpus; ///< that CUDA_VISIBLE_DEVICES shows
  size_t hidden_gpus = 0;      ///< that it does not
  std::string driver_version; ///< "570.124.06"
  std::string no_gpu;         ///< why `gpus` is empty
  std::string cuda_library;   ///< of the driver
  std::string nvcc;
  std::string nvcc_version;
  std::string nvrtc;
  std::string nvrtc_version;
  std::string ncu;
  std::string hip_library;
  std::string hipcc;
};

/// Opens libraries, and makes no context on a GPU.
accelerator_facts find_accelerators();

/// A machine without a GPU lacks nothing, as the CPU backend needs none; what it has not is `none`. One with a GPU is warned of
/// what keeps it from being used. Never fails.
void examine_accelerators(findings& out, const accelerator_facts& facts);

} // namespace kernelmill::commands
