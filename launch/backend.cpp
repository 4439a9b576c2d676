#include "launch/backend.hpp"

#include "gpu/toolchain/compiler_facts.hpp"
#include "launch/config/paths.hpp"

namespace kernelmill {

void chosen_backend::apply(toolchain_options& options) const {
  options.backend = name;
  if (name == "cpu") return;
  options.compiler.clear(); // the configured one is the C++ compiler of the CPU
  options.architecture = gpus.front().architecture;
  options.device_compiler = helper_program("kernelmill-nvrtc");
}

void chosen_backend::apply(referee_options& options, size_t index) const {
  if (name == "cpu") return;
  options.gpu_node = gpus[index].node;
  options.gpu_uuid = gpus[index].uuid;
}

expected<chosen_backend> choose_backend(const std::string& wanted, int only) {
  chosen_backend result;
  if (wanted == "cpu") return result;
  bool automatic = wanted == "auto" && only < 0;
  auto monitor = cuda::gpu_monitor::open();
  if (!monitor && automatic) return result;
  if (!monitor) return tl::unexpected<error>{monitor.error()};
  if (find_nvcc().empty()) {
    if (automatic) return result;
    return infrastructure_error("toolchain_missing", "failed to use backend cuda: there is no nvcc",
                                "install the CUDA toolkit, or set CUDA_HOME");
  }
  for (const auto& x : monitor->gpus())
    if (only < 0 || x.index == static_cast<unsigned>(only)) result.gpus.push_back(x);
  if (result.gpus.empty())
    return configuration_error("usage",
                               "failed to use GPU " + std::to_string(only) + ": there are " +
                                   std::to_string(monitor->gpus().size()),
                               "`kernelmill doctor` lists them, from 0 on");
  // One build serves all; a machine with several kinds is asked to name one.
  for (const auto& x : result.gpus)
    if (x.architecture != result.gpus.front().architecture)
      return configuration_error("mixed_gpus",
                                 "failed to use backend cuda: the GPUs of this machine differ (" +
                                     result.gpus.front().architecture + " and " + x.architecture +
                                     ")",
                                 "name one with --gpu, or hide the others from the driver");
  result.name = "cuda";
  return result;
}

} // namespace kernelmill
