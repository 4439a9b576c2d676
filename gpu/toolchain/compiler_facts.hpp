#pragma once

// What a compiler is, found out by asking it once.

#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct compiler_facts {
  std::string source_name;          ///< "kernel.cpp", "kernel.cu" or "kernel.hip"
  std::string path = "/usr/bin";    ///< PATH of the compiler's own processes
  std::string identity;             ///< "g++ 12.2.0 -std=c++20 -O3 -march=native ..."
  std::string digest;               ///< of version, flags, what -march=native means, and headers
  std::vector<std::string> compile; ///< compiler and flags, without input and output
  std::vector<std::string> link;    ///< what makes a library of it
  std::vector<bind_mount> mounts;
  bool whole = false; ///< `compile` is the whole command
};

/// Asks g++ for version and resolved flags. Fails with "toolchain_missing".
expected<compiler_facts> ask_gxx(sandbox& walls, const std::string& compiler,
                                 const std::vector<std::string>& extra_flags);

/// The same of nvcc, for GPUs of `architecture` ("sm_90"). One that this compiler does not know is
/// "unsupported_architecture", of class configuration. With a layer it takes sources in HIP.
expected<compiler_facts> ask_nvcc(sandbox& walls, const std::string& compiler,
                                  const std::string& architecture,
                                  const std::vector<std::string>& extra_flags,
                                  const hip_layer* layer = nullptr);

/// The same of `program`, which is kernelmill-nvrtc, for the contract `device`.
expected<compiler_facts> ask_nvrtc(sandbox& walls, const std::string& program,
                                   const std::string& architecture,
                                   const std::vector<std::string>& extra_flags = {},
                                   const hip_layer* layer = nullptr);

/// The same of hipcc, for GPUs of `architecture` ("gfx90a").
expected<compiler_facts> ask_hipcc(sandbox& walls, const std::string& compiler,
                                   const std::string& architecture,
                                   const std::vector<std::string>& extra_flags);

/// The command for references and baselines: the flags of candidates, without output and input.
std::vector<std::string> nvcc_command(const std::string& compiler, const std::string& architecture);

/// The same for AMD GPUs. Sources need not include hip/hip_runtime.h: a .cu file that names nothing
/// of CUDA's own is a HIP file too.
std::vector<std::string> hipcc_command(const std::string& compiler,
                                       const std::string& architecture);

/// Where nvcc usually is: under CUDA_HOME, else /usr/local/cuda, else on PATH; its real path, so
/// that the sandbox need not follow links. Empty when there is none.
std::string find_nvcc();

/// The same of hipcc: HIPCC when it is a path, else under ROCM_PATH or HIP_PATH, else /opt/rocm,
/// else on PATH.
std::string find_hipcc();

/// What the sandbox must show of the machine for a compiler: the folder that its own `bin` lies in,
/// of a hipcc ROCm's, or nothing for one in /usr, which is there anyway.
std::vector<bind_mount> compiler_mounts(const std::string& compiler);

} // namespace kernelmill
