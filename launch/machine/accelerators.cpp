#include "launch/machine/accelerators.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "gpu/cuda/amd_devices.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/runtime_compiler.hpp"
#include "gpu/cuda/visible_gpus.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "launch/config/paths.hpp"
#include "launch/machine/programs.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

std::string found_library(const std::vector<const char*>& names) {
  for (const char* name : names)
    // Not unloaded: such libraries leave allocations and threads behind that would lose their code.
    if (void* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE)) {
      ::dlclose(handle);
      return name;
    }
  return {};
}

/// "release 13.0, V13.0.88" of the lines that `nvcc --version` prints; empty when it does not run.
std::string version_of_nvcc(const std::string& nvcc) {
  auto processes = start_spawner();
  if (nvcc.empty() || !processes) return {};
  auto text = output_of(*processes, nvcc, "--version");
  auto at = text.find("release ");
  return at == text.npos ? std::string{} : text.substr(at, text.find('\n', at) - at);
}

/// What the driver says of itself: "RmProfilingAdminOnly: 1". ncu then says ERR_NVGPUCTRPERM.
bool counters_are_restricted() {
  auto parameters = read_whole("/proc/driver/nvidia/params");
  return ::geteuid() != 0 && parameters &&
         parameters->find("RmProfilingAdminOnly: 1") != std::string::npos;
}

} // namespace

std::string toolkit_program(const std::string& name) {
  namespace fs = std::filesystem;
  if (auto found = on_path(name); !found.empty()) return found;
  std::vector<fs::path> places;
  if (auto* home = std::getenv("CUDA_HOME")) places.push_back(fs::path{home} / "bin" / name);
  places.push_back(fs::path{"/usr/local/cuda/bin"} / name);
  std::error_code code;
  std::vector<fs::path> versions;
  for (auto& x : fs::directory_iterator{"/opt/nvidia/nsight-compute", code})
    versions.push_back(x.path() / name);
  std::sort(versions.rbegin(), versions.rend());
  places.insert(places.end(), versions.begin(), versions.end());
  for (auto& x : places)
    if (::access(x.c_str(), X_OK) == 0) return x.string();
  return {};
}

std::string driver_library() {
  auto driver = cuda::open_driver();
  return driver ? (*driver)->path : std::string{};
}

cuda::gpu_peaks peaks_of(const cuda::gpu& which) {
  auto monitor = cuda::gpu_monitor::open();
  if (!monitor) return {};
  for (size_t i = 0; i < monitor->gpus().size(); ++i)
    if (monitor->gpus()[i].uuid == which.uuid) return monitor->peaks(static_cast<unsigned>(i));
  return {};
}

accelerator_facts find_accelerators() {
  accelerator_facts x;
  if (auto monitor = cuda::gpu_monitor::open()) {
    x.driver_version = monitor->driver_version();
    auto visible = cuda::visible_gpus(monitor->gpus(), std::getenv("CUDA_VISIBLE_DEVICES"));
    if (visible)
      x.gpus = std::move(*visible);
    else
      x.no_gpu = visible.error().message;
    x.hidden_gpus = monitor->gpus().size() - x.gpus.size();
  } else {
    x.no_gpu = monitor.error().message;
  }
  if (auto nvrtc = cuda::find_runtime_compiler()) {
    x.nvrtc = nvrtc->library;
    x.nvrtc_version = nvrtc->version;
  }
  x.cuda_library = found_library({"libcuda.so.1"});
  x.nvcc = find_nvcc();
  x.nvcc_version = version_of_nvcc(x.nvcc);
  x.ncu = toolkit_program("ncu");
  x.counters_restricted = counters_are_restricted();
  x.hip_library = found_library({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"});
  x.hipcc = find_hipcc();
  x.amd_gpus = cuda::amd_gpus();
  if (auto layer = find_hip_layer(data_directory() + "/configs/hip"))
    x.hip_headers = layer->version + ", " + layer->headers;
  return x;
}

} // namespace kernelmill
