#pragma once

// What this machine has of GPUs, and of what it takes to use them.

#include <string>
#include <vector>

#include "gpu/cuda/devices.hpp"

namespace kernelmill {

/// Everything about GPUs that a machine may have; what is empty was not found.
struct accelerator_facts {
  std::vector<cuda::gpu> gpus; ///< that CUDA_VISIBLE_DEVICES shows
  size_t hidden_gpus = 0;      ///< that it does not
  std::string driver_version;  ///< "570.124.06"
  std::string no_gpu;          ///< why `gpus` is empty
  std::string cuda_library;    ///< of the driver
  std::string nvcc;
  std::string nvcc_version;
  std::string nvrtc;
  std::string nvrtc_version;
  std::string ncu;
  bool counters_restricted =
      false; ///< the driver lets only administrators read them, and we are none
  std::vector<cuda::gpu> amd_gpus; ///< that the kernel's driver lists
  std::string hip_library;
  std::string hipcc;
  std::string hip_headers; ///< for NVIDIA GPUs: version and folder
};

/// The path of ncu or compute-sanitizer: on PATH, else with the toolkit as nvcc is, else in a
/// folder of its own, the latest version; empty when there is none.
std::string toolkit_program(const std::string& name);

/// The path of the CUDA driver's library; empty when there is none.
std::string driver_library();

/// What a GPU of find_accelerators() can do at most; nothing of what the driver does not tell.
cuda::gpu_peaks peaks_of(const cuda::gpu& which);

/// Opens libraries, and makes no context on a GPU.
accelerator_facts find_accelerators();

} // namespace kernelmill
