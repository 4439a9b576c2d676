#include "launch/machine/backend.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "gpu/cuda/amd_devices.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/visible_gpus.hpp"
#include "gpu/inspect/spill_lines.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "launch/config/paths.hpp"
#include "launch/machine/accelerators.hpp"
#include "launch/machine/amd_gpu.hpp"

namespace kernelmill {

namespace {

// Of kernelmill_hip.h, which NVIDIA GPUs need for HIP.
std::string hip_folder(const chosen_backend& x) {
  return x.name == "hip" && x.on_nvidia() ? data_directory() + "/configs/hip" : std::string{};
}

} // namespace

void chosen_backend::apply(toolchain_options& options) const {
  options.backend = name;
  options.python = python;
  if (name == "cpu") return;
  options.compiler.clear(); // the configured one is the C++ compiler of the CPU
  options.architecture = target();
  options.hip_folder = hip_folder(*this);
  options.device_compiler = helper_program("kernelmill-nvrtc");
  options.find_spills = &find_spill_lines;
}

void chosen_backend::apply(referee_options& options, size_t index) const {
  options.python = python;
  options.python_at_once = python_at_once;
  if (name == "cpu") return;
  options.gpu_node = gpus[index].node;
  options.gpu_uuid = gpus[index].uuid;
  options.backend = name;
  options.hip_folder = hip_folder(*this);
  if (!on_nvidia()) {
    options.architecture = target();
    return;
  }
  options.sanitizer = toolkit_program("compute-sanitizer");
  options.ncu = toolkit_program("ncu");
}

namespace {

tl::unexpected<error> no_nvcc(const std::string& backend) {
  return infrastructure_error("toolchain_missing",
                              "failed to use backend " + backend + ": there is no nvcc",
                              "install the CUDA toolkit, or set CUDA_HOME");
}

// It becomes part of a command line.
expected<void> check_architecture(const std::string& backend, const std::string& x) {
  if (backend == "cpu")
    return configuration_error("usage",
                               "failed to read --arch: backend cpu builds for this machine",
                               "leave it out, or name --backend cuda or hip");
  auto odd = x.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_:+-");
  auto is_of = [&](std::string_view begin) {
    return x.starts_with(begin) && x.size() > begin.size() && odd == x.npos;
  };
  if (is_of("sm_") || (backend == "hip" && is_of("gfx"))) return {};
  return configuration_error("usage",
                             "failed to read --arch: \"" + x + "\" is none of backend " + backend,
                             "those of cuda are like sm_90, those of hip like gfx90a, or sm_90 for "
                             "HIP on NVIDIA GPUs");
}

expected<chosen_backend> choose_cuda_compiler(const std::string& architecture, int only) {
  if (architecture.empty()) {
    auto result = choose_backend("cuda", only);
    if (result || !lacks_gpu(result.error())) return result;
  }
  if (find_nvcc().empty()) return no_nvcc("cuda");
  return chosen_backend{"cuda", {}, architecture.empty() ? usual_architecture : architecture};
}

expected<chosen_backend> choose_hip_compiler(std::string architecture, int only) {
  if (architecture.empty()) {
    auto result = choose_backend("hip", only);
    if (result) return result;
  }
  if (architecture.starts_with("sm_")) {
    if (find_nvcc().empty()) return no_nvcc("hip");
    return chosen_backend{"hip", {}, architecture};
  }
  if (find_hipcc().empty())
    return infrastructure_error("toolchain_missing", "failed to use backend hip: there is no hipcc",
                                "apt install hipcc, or set ROCM_PATH or HIPCC");
  if (architecture.empty()) architecture = amd_architecture();
  if (architecture.empty()) architecture = usual_amd_architecture;
  return chosen_backend{"hip", {}, architecture};
}

tl::unexpected<error> no_such_gpu(const cuda::gpu_monitor& monitor, unsigned index) {
  const auto& all = monitor.gpus();
  bool hidden = std::any_of(all.begin(), all.end(), [&](auto& x) { return x.index == index; });
  return configuration_error("usage",
                             "failed to use GPU " + std::to_string(index) +
                                 (hidden ? std::string{": CUDA_VISIBLE_DEVICES hides it"}
                                         : ": there are " + std::to_string(all.size())),
                             "`kernelmill doctor` lists them, from 0 on");
}

expected<chosen_backend> choose_amd(const std::vector<cuda::gpu>& all, int only) {
  KM_TRY(cuda::open_driver(cuda::gpu_api::hip));
  chosen_backend result{"hip", {}, {}};
  for (const auto& x : all)
    if (only < 0 ? x.architecture == all.front().architecture
                 : x.index == static_cast<unsigned>(only))
      result.gpus.push_back(x);
  if (result.gpus.empty())
    return configuration_error("usage",
                               "failed to use GPU " + std::to_string(only) + ": there are " +
                                   std::to_string(all.size()) + " of AMD's",
                               "`kernelmill doctor` lists them, from 0 on");
  if (find_hipcc().empty())
    return infrastructure_error("toolchain_missing", "failed to use backend hip: there is no hipcc",
                                "apt install hipcc, or set ROCM_PATH or HIPCC");
  return result;
}

tl::unexpected<error> no_gpu_for_hip(const error& why) {
  return infrastructure_error(
      why.category,
      "failed to use backend hip: this machine has neither an AMD GPU (" + amd_runtime_text() +
          ") nor an NVIDIA one (" + why.message + ")",
      "`kernelmill eval --compile-only --arch gfx90a` compiles and needs no GPU");
}

} // namespace

std::string hardware_text(const chosen_backend& x) {
  if (!x.hardware.empty()) return x.hardware;
  if (!x.gpus.empty())
    return x.gpus.front().name + " (" + x.gpus.front().architecture + ")" +
           (x.name == "hip" && x.on_nvidia() ? ", hip on nvidia" : "");
  if (x.name != "cpu") return x.architecture;
  std::ifstream facts{"/proc/cpuinfo"};
  for (std::string line; std::getline(facts, line);)
    if (auto colon = line.find(": "); line.starts_with("model name") && colon != line.npos)
      return line.substr(colon + 2);
  return {};
}

expected<chosen_backend> choose_compiler(const std::string& wanted, const std::string& architecture,
                                         int only) {
  auto name = wanted;
  if (name == "auto" && architecture.starts_with("sm_")) name = "cuda";
  if (name == "auto" && architecture.starts_with("gfx")) name = "hip";
  if (name == "auto" && architecture.empty()) return choose_backend(name, only);
  if (!architecture.empty()) KM_TRY(check_architecture(name, architecture));
  if (name == "cuda") return choose_cuda_compiler(architecture, only);
  if (name == "hip") return choose_hip_compiler(architecture, only);
  return choose_backend(name, only);
}

expected<chosen_backend> choose_backend(const std::string& wanted, int only) {
  chosen_backend result;
  if (wanted == "cpu") return result;
  if (wanted == "hip") {
    auto amd = cuda::amd_gpus();
    if (!amd.empty()) return choose_amd(amd, only);
  }
  bool automatic = wanted == "auto" && only < 0;
  auto monitor = cuda::gpu_monitor::open();
  if (!monitor && automatic) return result;
  if (!monitor && wanted == "hip") return no_gpu_for_hip(monitor.error());
  KM_TRY(monitor);
  auto visible = cuda::visible_gpus(monitor->gpus(), std::getenv("CUDA_VISIBLE_DEVICES"));
  if (!visible && automatic && visible.error().category == "no_gpu") return result;
  KM_TRY(visible);
  for (const auto& x : *visible)
    if (only < 0 || x.index == static_cast<unsigned>(only)) result.gpus.push_back(x);
  if (result.gpus.empty()) return no_such_gpu(*monitor, static_cast<unsigned>(only));
  if (find_nvcc().empty()) {
    if (automatic) return chosen_backend{};
    return no_nvcc(wanted == "hip" ? "hip" : "cuda");
  }
  // One build serves all; a machine with several kinds is asked to name one.
  for (const auto& x : result.gpus)
    if (x.architecture != result.gpus.front().architecture)
      return configuration_error(
          "mixed_gpus",
          "failed to use the GPUs of this machine: they differ (" +
              result.gpus.front().architecture + " and " + x.architecture + ")",
          "name one with --gpu, or show those of one kind by CUDA_VISIBLE_DEVICES");
  result.name = wanted == "hip" ? "hip" : "cuda";
  if (result.name == "hip") KM_TRY(find_hip_layer(hip_folder(result)));
  return result;
}

bool lacks_gpu(const error& why) {
  return why.category == "no_gpu" || why.category == "nvml_missing";
}

error for_file(error why, const std::string& file) {
  if (lacks_gpu(why) && file.ends_with(".cu"))
    why.hint = "CUDA runs on a machine with an NVIDIA GPU and its driver; without one, `kernelmill "
               "build --arch sm_90 " +
               file + "` compiles it";
  return why;
}

expected<void> check_compiler(const std::string& path) {
  if (access(path.c_str(), X_OK) == 0) return {};
  return infrastructure_error(
      "toolchain_missing",
      "failed to find the C++ compiler " + path + ", which kernels are built with",
      "apt install g++, or name another in the configuration: compile.compiler");
}

} // namespace kernelmill
