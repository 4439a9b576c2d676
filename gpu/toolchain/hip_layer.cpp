#include "gpu/toolchain/hip_layer.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

// "#define HIP_VERSION_MAJOR 5" and the same of MINOR.
std::string version_in(const fs::path& header) {
  std::ifstream in{header};
  std::string major, minor;
  for (std::string word; in >> word;) {
    if (word == "HIP_VERSION_MAJOR" && major.empty()) in >> major;
    if (word == "HIP_VERSION_MINOR" && minor.empty()) in >> minor;
  }
  return major.empty() ? "of unknown version" : major + "." + minor;
}

} // namespace

expected<hip_layer> find_hip_layer(const std::string& ours) {
  std::error_code problem;
  if (!fs::exists(fs::path{ours} / "kernelmill_hip.h", problem))
    return infrastructure_error("toolchain_missing",
                                "failed to build HIP for NVIDIA GPUs: there is no " + ours +
                                    "/kernelmill_hip.h",
                                "it is installed with kernelmill; set KERNELMILL_HOME to the "
                                "folder that holds its configs");
  std::vector<fs::path> places;
  for (const char* name : {"HIP_PATH", "ROCM_PATH"})
    if (const char* home = std::getenv(name); home != nullptr && *home == '/')
      places.push_back(fs::path{home} / "include");
  for (const auto& place :
       {ours + "/include", std::string{"/usr/include"}, std::string{"/opt/rocm/include"}})
    places.emplace_back(place);
  for (const auto& place : places)
    if (fs::exists(place / "hip/nvidia_detail/nvidia_hip_runtime.h", problem))
      return hip_layer{ours, fs::canonical(place, problem).string(),
                       version_in(place / "hip/hip_version.h")};
  return infrastructure_error(
      "toolchain_missing",
      "failed to build HIP for NVIDIA GPUs: AMD's headers for them (hip/nvidia_detail) are not "
      "here",
      "apt install libamdhip64-dev, or set HIP_PATH to the folder whose include has them");
}

expected<std::optional<hip_layer>> layer_of(const build_target& x) {
  if (x.backend != "hip" || is_amd_architecture(x.architecture)) return std::nullopt;
  auto found = find_hip_layer(x.hip_folder);
  KM_TRY(found);
  return std::move(*found);
}

std::vector<std::string> nvcc_flags(const hip_layer& x) {
  std::vector<std::string> result{"-x", "cu", "-D__HIP_PLATFORM_NVIDIA__"};
  // Where compilers look anyway, it must stay behind what they have of their own.
  if (x.headers != "/usr/include") result.insert(result.end(), {"-isystem", x.headers});
  // Behind CUDA's own: what it may be installed without.
  result.insert(result.end(), {"-isystem", x.ours + "/fallback"});
  result.insert(result.end(), {"-include", x.ours + "/kernelmill_hip.h"});
  return result;
}

std::vector<std::string> nvrtc_flags(const hip_layer& x) {
  return {"-D__HIP_PLATFORM_NVIDIA__", "--include-path=" + x.ours + "/device",
          "--pre-include=" + x.ours + "/kernelmill_hip_device.h"};
}

std::vector<bind_mount> mounts_of(const hip_layer& x) {
  std::vector<bind_mount> result;
  for (const auto& folder : {x.ours, x.headers})
    if (!folder.starts_with("/usr/")) result.push_back({folder, folder, false});
  return result;
}

} // namespace kernelmill
