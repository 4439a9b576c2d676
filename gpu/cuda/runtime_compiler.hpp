#pragma once

// NVRTC, opened at run time: device code to a cubin within the process, some 20 ms.

#include <string>
#include <vector>

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

/// Which NVRTC compile_device_code() uses; fails as it does.
expected<runtime_compiler_facts> find_runtime_compiler();

/// Compiles `source` for `architecture` ("sm_90"). A source that does not compile is an answer;
/// fails with "nvrtc_missing" (infrastructure) where there is no NVRTC.
/// Thread safety: any number of threads.
expected<compiled_device_code> compile_device_code(const std::string& source,
                                                   const std::string& name,
                                                   const std::string& architecture,
                                                   const std::vector<std::string>& flags = {});

} // namespace kernelmill::cuda
