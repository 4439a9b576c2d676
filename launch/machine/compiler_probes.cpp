#include "launch/machine/compiler_probes.hpp"

#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/config/paths.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/programs.hpp"

namespace kernelmill {

namespace {

struct planned_probe {
  compiler_probe shown;
  toolchain_options options;
  contract_kind contract = contract_kind::native;
};

std::vector<planned_probe> planned_probes() {
  std::vector<planned_probe> result;
  toolchain_options host;
  host.compiler = compile_section{}.compiler;
  result.push_back(
      {{"C++", "a library with OpenMP", "no candidate can be built on the CPU backend", {}}, host});
  if (auto nvcc = find_nvcc(); !nvcc.empty()) {
    toolchain_options cuda;
    cuda.backend = "cuda";
    cuda.compiler = nvcc;
    cuda.device_compiler = helper_program("kernelmill-nvrtc");
    result.push_back({{"CUDA", "a library, by " + nvcc, "no CUDA source can be built", {}}, cuda});
    result.push_back(
        {{"device", "a cubin, by NVRTC", "no candidate of the contract device can be built", {}},
         cuda,
         contract_kind::device});
  }
  auto folder = data_directory() + "/configs/hip";
  if (!find_nvcc().empty() && find_hip_layer(folder)) {
    toolchain_options hip;
    hip.backend = "hip";
    hip.hip_folder = folder;
    result.push_back({{"HIP on NVIDIA",
                       "a library, by nvcc and HIP's headers",
                       "no HIP source can be built for NVIDIA GPUs",
                       {}},
                      hip});
  }
  if (auto hipcc = find_hipcc(); !hipcc.empty()) {
    toolchain_options hip;
    hip.backend = "hip";
    hip.compiler = hipcc;
    hip.architecture = "gfx90a";
    result.push_back({{"HIP", "a library, by " + hipcc, "no HIP source can be built", {}}, hip});
  }
  return result;
}

std::vector<compiler_probe> tried(const std::vector<planned_probe>& all,
                                  const std::function<void(const std::string&)>& before = {}) {
  std::vector<compiler_probe> result;
  auto processes = start_spawner();
  if (!processes || find_bubblewrap().empty()) return result;
  sandbox walls{*processes};
  for (const auto& x : all) {
    if (before) before(x.shown.name);
    native_toolchain toolchain{walls, x.options};
    result.push_back(x.shown);
    if (auto works = toolchain.probe(x.contract); !works) result.back().failure = works.error();
  }
  return result;
}

} // namespace

std::vector<compiler_probe> probe_compilers(const std::function<void(const std::string&)>& before) {
  return tried(planned_probes(), before);
}

std::optional<compiler_probe> probe_torch_extension(const found_python& python) {
  toolchain_options options;
  options.python = python.path;
  options.deadline_ms = compile_section{}.torch_deadline_ms;
  if (auto nvcc = find_nvcc(); !python.cuda.empty() && !nvcc.empty()) {
    options.backend = "cuda";
    options.compiler = nvcc;
  }
  auto all = tried({{{"torch",
                      "an extension of load_inline",
                      "every answer with load_inline is lost as a fault of this machine",
                      {}},
                     options,
                     contract_kind::torch}});
  if (all.empty()) return std::nullopt;
  return all.front();
}

} // namespace kernelmill
