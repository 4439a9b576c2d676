#pragma once

// The GPU code of a Python module: of each CUDA source that it hands to torch, and of each kernel
// that Triton compiled, with Triton's own stages.

#include <string>
#include <utility>
#include <vector>

#include "gpu/inspect/listed_build.hpp"
#include "gpu/toolchain/torch_toolchain.hpp"

namespace kernelmill {

/// Code that comes from one text.
struct listed_code {
  std::string name;   ///< "relu.cuda_sources", or Triton's kernel
  std::string file;   ///< what tables of lines call the text
  std::string source; ///< the text
  std::string ptx;
  std::string sass;
  std::vector<kernel_resources> kernels;
  std::vector<std::pair<std::string, std::string>> stages; ///< "ttir", "ttgir", "llir": text
  std::string gcn = {};         ///< assembly of HIP, in place of PTX and SASS
  std::string cubin = {};       ///< that `sass` is of
  std::string life_ranges = {}; ///< of the cubin's registers; see add_live_registers()
};

/// What could not be had is added to `missing`. At most 64, in the order of names.
std::vector<listed_code> code_of_module(sandbox& walls, const listing_tools& tools,
                                        const listed_module& x, const std::string& source,
                                        std::vector<std::string>& missing);

} // namespace kernelmill
