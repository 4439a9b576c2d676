// What the machine has of GPUs, and of what it takes to use them.

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/program/doctor.hpp"

namespace kernelmill::commands {

namespace {

// -- judging ----------------------------------------------------------------------------------

/// Something that the backend for CUDA needs, or will; `needed`: there is a GPU, idle without.
finding part(const char* name, const std::string& found, bool needed, const char* cost,
             const char* remedy) {
  if (!found.empty()) return {name, finding_state::ok, found, {}, {}};
  return {name, needed ? finding_state::warn : finding_state::none, "not found", cost, remedy};
}

std::string with_version(const std::string& path, const std::string& version) {
  return path.empty() || version.empty() ? path : path + ", " + version;
}

// Which of the two --backend hip is; empty: neither.
std::string hip_backend(const accelerator_facts& facts) {
  if (!facts.amd_gpus.empty() && !facts.hip_library.empty()) return "amd, by " + facts.hip_library;
  if (facts.gpus.empty() || facts.nvcc.empty() || facts.hip_headers.empty()) return {};
  return "nvidia, by nvcc and the headers of HIP " + facts.hip_headers;
}

finding judge(const cuda::gpu& x, const std::string& driver, const char* kind = "gpu") {
  auto memory = x.memory_bytes == 0 ? std::string{"memory unknown"}
                                    : cli::format_bytes(static_cast<double>(x.memory_bytes));
  finding result{fmt::format("{} {}", kind, x.index),
                 finding_state::ok,
                 fmt::format("{}, {}, {}, driver {}", x.name, memory,
                             x.architecture.empty() ? "architecture unknown" : x.architecture,
                             driver.empty() ? "unknown" : driver),
                 {},
                 {}};
  if (::access(x.node.c_str(), R_OK | W_OK) == 0) return result;
  result.state = finding_state::warn;
  result.detail += fmt::format("; {} cannot be opened", x.node);
  result.cost = "nothing runs on this GPU";
  result.remedy = "let this user read and write " + x.node + "; start a container with --gpus all";
  return result;
}

void judge_gpus(findings& out, const accelerator_facts& facts) {
  if (facts.gpus.empty())
    out.push_back({"gpu", finding_state::none, "not found: " + facts.no_gpu,
                   "candidates in CUDA are not run; the CPU backend needs no GPU",
                   "on a machine with an NVIDIA GPU: install its driver (CUDA 12 or later); start "
                   "a container with --gpus all"});
  for (auto& x : facts.gpus) out.push_back(judge(x, facts.driver_version));
  if (!facts.gpus.empty() && facts.hidden_gpus > 0)
    out.push_back({"hidden gpus",
                   finding_state::ok,
                   fmt::format("{}, by CUDA_VISIBLE_DEVICES", facts.hidden_gpus),
                   {},
                   {}});
  bool alike = std::all_of(facts.gpus.begin(), facts.gpus.end(), [&](const cuda::gpu& x) {
    return x.architecture == facts.gpus.front().architecture;
  });
  if (!alike)
    out.push_back({"gpus", finding_state::warn, "of several architectures",
                   "one node does not use them all: it refuses with mixed_gpus",
                   "name one with --gpu N, or show those of one kind by CUDA_VISIBLE_DEVICES"});
}

} // namespace

void examine_accelerators(findings& out, const accelerator_facts& facts) {
  bool gpu = !facts.gpus.empty();
  judge_gpus(out, facts);
  out.push_back(part("cuda driver", facts.cuda_library, gpu,
                     "no process can make a context on a GPU: --backend cuda is refused",
                     "install the NVIDIA driver (libcuda.so.1); start a container with --gpus all "
                     "and NVIDIA_DRIVER_CAPABILITIES=compute,utility"));
  out.push_back(part("nvcc", with_version(facts.nvcc, facts.nvcc_version), gpu,
                     "no candidate in CUDA can be built: --backend cuda is refused",
                     "install the CUDA toolkit (cuda-nvcc), or set CUDA_HOME"));
  out.push_back(part("nvrtc", with_version(facts.nvrtc, facts.nvrtc_version), gpu,
                     "the referee of a GPU does not start: its own kernels are built by NVRTC",
                     "install the CUDA toolkit (cuda-nvrtc) below /usr/local/cuda, or where the "
                     "loader finds it"));
  out.push_back(part("ncu", facts.ncu, false,
                     "kernels on a GPU have no hardware counters: their profile rests on the build "
                     "and the timing",
                     "install Nsight Compute (nsight-compute)"));
  if (gpu && facts.counters_restricted)
    out.push_back({"gpu counters", finding_state::warn,
                   "only administrators may read them (ERR_NVGPUCTRPERM)",
                   "ncu profiles no kernel; profiles rest on the build and the timing",
                   "set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module"});
  bool amd = !facts.amd_gpus.empty();
  for (auto& x : facts.amd_gpus) out.push_back(judge(x, {}, "amd gpu"));
  out.push_back(part("hip runtime", facts.hip_library, amd,
                     "nothing runs on an AMD GPU: --backend hip is refused there",
                     "install ROCm's runtime (libamdhip64)"));
  out.push_back(part("hipcc", facts.hipcc, amd, "no candidate in HIP can be built for AMD GPUs",
                     "install ROCm's compiler (hipcc)"));
  out.push_back(
      part("hip backend", hip_backend(facts), false,
           "candidates in HIP are compiled, not judged: there is no GPU for them",
           facts.hip_headers.empty()
               ? "on a machine with an NVIDIA GPU: apt install libamdhip64-dev, for HIP's "
                 "headers; on one with an AMD GPU: install ROCm"
               : "a machine with an AMD or an NVIDIA GPU judges them"));
}

} // namespace kernelmill::commands
