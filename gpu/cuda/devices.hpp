#pragma once

// Which GPUs there are, asked of NVML: without a context, so a node can ask and stay safe from
// every fault of a GPU.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::cuda {

struct gpu {
  unsigned index = 0;       ///< as `--gpu` counts: NVML's order, by bus address
  std::string name;         ///< "NVIDIA H200"
  std::string uuid;         ///< "GPU-..."; names it in CUDA_VISIBLE_DEVICES
  std::string architecture; ///< "sm_90"
  std::string node;         ///< "/dev/nvidia0"
  uint64_t memory_bytes = 0;
};

struct gpu_state {
  unsigned clock_mhz = 0; ///< of the multiprocessors
  unsigned memory_clock_mhz = 0;
  unsigned celsius = 0;
  unsigned milliwatts = 0;
  uint64_t throttle_reasons = 0; ///< NVML's bits

  /// Slowed down by heat, power or the board, which makes a time no measure of a kernel.
  bool slowed() const noexcept { return (throttle_reasons & 0xec) != 0; }
};

/// What somebody has set of a GPU; what the driver does not tell is nothing.
struct gpu_settings {
  std::optional<unsigned> power_limit_milliwatts;
  std::optional<unsigned> most_clock_mhz; ///< of the multiprocessors, that the board allows
  std::optional<bool> mig;                ///< cut into instances
};

/// What a board can do at most, by its data sheet; what the driver does not tell is nothing.
struct gpu_peaks {
  std::optional<double> memory_bytes_per_second;
  std::optional<double> flops_per_second; ///< fp32 multiply-adds, each counted as two
  std::optional<unsigned> multiprocessors;
};

/// Thread safety: none.
class gpu_monitor {
public:
  /// Fails with "nvml_missing" or "no_gpu" (infrastructure).
  static expected<gpu_monitor> open();

  const std::vector<gpu>& gpus() const noexcept { return gpus_; }
  const std::string& driver_version() const noexcept { return driver_version_; }

  /// REQUIRES: index < gpus().size().
  gpu_state state(unsigned index) const;
  gpu_settings settings(unsigned index) const;
  gpu_peaks peaks(unsigned index) const;

  /// Of CUDA, that the driver speaks: "13.0"; empty when it does not tell.
  std::string runtime_version() const;

private:
  std::vector<gpu> gpus_;
  std::string driver_version_;
};

} // namespace kernelmill::cuda
