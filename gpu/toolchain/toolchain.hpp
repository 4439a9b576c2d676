#pragma once

// Turns the source of a candidate into a shared library, in the sandbox, and remembers the
// result under the hash of source, flags and compiler version.

#include <memory>
#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "messages/build.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// Remarks on where a kernel of CUDA spills registers, of source and architecture.
using spill_finder = std::vector<diagnostic> (*)(sandbox& walls, const std::string& source,
                                                 const std::string& architecture);

struct toolchain_options {
  std::string backend = "cpu";        ///< "cpu" (g++), "cuda" (nvcc) or "hip" (hipcc)
  std::string compiler;               ///< empty: the usual one of the backend
  std::string architecture = "sm_90"; ///< of the GPU; not for "cpu"
  std::string hip_folder;             ///< of kernelmill_hip.h, for "hip" on NVIDIA GPUs
  std::string device_compiler;        ///< path of kernelmill-nvrtc; empty: no contract `device`
  std::string python;                 ///< interpreter that has torch; empty: no contract `torch`
  std::string cache_directory;        ///< empty: default_cache_directory() of build_cache.hpp
  uint64_t cache_bytes = uint64_t{2} << 30;
  std::vector<std::string> extra_flags;
  uint32_t deadline_ms = 60'000;
  uint64_t memory_bytes = uint64_t{4} << 30;
  spill_finder find_spills = nullptr; ///< asked of builds that spill; null: nobody is
};

/// The compiler of the `native` contract: g++ -O3 -march=native -fopenmp, with the standard headers
/// precompiled once, or nvcc -O3 -arch=... with the host part built by the same g++, or
/// hipcc -O3 --offload-arch=..., and for HIP on NVIDIA GPUs nvcc with AMD's header layer. Also the
/// compiler of the `device` contract: NVRTC, or hipRTC for AMD GPUs, a fresh process for each
/// source.
/// Thread safety: any number of threads may build at once.
class native_toolchain {
public:
  native_toolchain(sandbox& walls, toolchain_options options);
  ~native_toolchain();

  /// Names compiler, version and flags; part of every cache key.
  const std::string& identity() const;

  /// Builds a candidate. A program that does not compile is an answer (class candidate in the
  /// result's fault); a compiler that cannot be run is class infrastructure there.
  Message<wire::BuildResult> build(wire::BuildRequest::Reader request);

  /// Builds a source of ours as candidates of a contract are built, past the cache: the control of
  /// a build that fails. Fails with class infrastructure, and names the package that is missing.
  expected<void> probe(contract_kind contract);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
