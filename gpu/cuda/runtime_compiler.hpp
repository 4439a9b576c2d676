#pragma once

// NVRTC and AMD's hipRTC, opened at run time: device code to a cubin, or to AMD's code object,
// within the process, some 20 ms.

#include <string>
#include <vector>

#include "gpu/cuda/driver.hpp"
#include "messages/error.hpp"

namespace kernelmill::cuda {

struct compiled_device_code {
  bool ok = false;
  std::string cubin;
  std::string log;
};

struct runtime_compiler_facts {
  std::string version; ///< "13.0"
  std::string library; ///< the path it was opened from
};

/// Which NVRTC or hipRTC compile_device_code() uses; fails as it does.
expected<runtime_compiler_facts> find_runtime_compiler(gpu_api api = gpu_api::cuda);

/// Compiles `source` for `architecture`: by NVRTC for "sm_90", by hipRTC for "gfx90a". A source
/// that does not compile is an answer; fails with "nvrtc_missing" or "hiprtc_missing"
/// (infrastructure) where there is none. Thread safety: any number of threads.
expected<compiled_device_code> compile_device_code(const std::string& source,
                                                   const std::string& name,
                                                   const std::string& architecture,
                                                   const std::vector<std::string>& flags = {});

} // namespace kernelmill::cuda
