#include "launch/machine/amd_gpu.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>

#include "gpu/cuda/amd_devices.hpp"
#include "gpu/cuda/driver.hpp"

namespace kernelmill {

std::string amd_architecture(const std::string& topology) {
  auto all = cuda::amd_gpus(topology);
  return all.empty() ? std::string{} : all.front().architecture;
}

std::string amd_runtime_text() {
  auto text = [](bool found) { return found ? "found" : "not found"; };
  auto* library = cuda::open_hip_library();
  return fmt::format("libamdhip64.so is {}, /dev/kfd is {}", text(library != nullptr),
                     text(::access("/dev/kfd", F_OK) == 0));
}

} // namespace kernelmill
