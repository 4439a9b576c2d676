#pragma once

// Listings that tools printed of kernels_sm90.cu; golden/README.md says which tools.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/inspect/listing.hpp"

namespace kernelmill {

inline std::string read_golden(const std::string& name) {
  std::ifstream in{std::string{KERNELMILL_TREE "/tests/unit/inspect/golden/"} + name};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// With live registers.
inline std::vector<kernel_listing> recorded_sass() {
  auto result = read_sass(read_golden("kernels_sm90_nvdisasm_gi_recorded.txt"), "kernel.cu");
  add_live_registers(read_golden("kernels_sm90_nvdisasm_lrm_recorded.txt"), result);
  return result;
}

inline std::vector<kernel_listing> recorded_ptx() {
  return read_ptx(read_golden("kernels_sm90_recorded.ptx"), "kernel.cu");
}

/// The kernel whose name begins so; one without lines where there is none.
inline kernel_listing kernel_of(const std::vector<kernel_listing>& list, std::string_view name) {
  auto found = std::find_if(list.begin(), list.end(),
                            [&](const kernel_listing& x) { return x.name.starts_with(name); });
  return found == list.end() ? kernel_listing{} : *found;
}

} // namespace kernelmill
