#pragma once

// Code of a GPU as text, by kernel, each instruction with the line of source that it comes from.
// Plain functions on what nvcc and nvdisasm print.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/toolchain/diagnostics.hpp"

namespace kernelmill {

struct code_line {
  uint32_t source_line = 0; ///< of the candidate's file; 0: not known, or of a header alone
  std::string text;         ///< "ld.global.f32 %f1, [%rd4];"
};

struct kernel_listing {
  std::string name; ///< demangled
  std::vector<code_line> lines;
};

/// Reads PTX that was made with -lineinfo. `file` is the name of the candidate's source in it.
std::vector<kernel_listing> read_ptx(std::string_view text, std::string_view file);

/// Reads what `nvdisasm -g -c` prints of a cubin; of `cuobjdump --dump-sass`, which knows no lines,
/// the instructions.
std::vector<kernel_listing> read_sass(std::string_view text, std::string_view file);

/// What `cuobjdump --dump-resource-usage` tells of kernels. Spills it does not tell.
std::vector<kernel_resources> read_resource_usage(std::string_view text);

/// How many instructions of a listing do what: "global memory", "shared memory", "local memory",
/// "tensor cores", "floating point", "double precision", "integer", "control", "barriers", "other".
std::map<std::string, uint32_t> instruction_mix(const kernel_listing& x);

/// One line of source with what became of it.
struct source_row {
  uint32_t line = 0; ///< 0: instructions that no line is known of
  std::string source;
  std::vector<std::string> ptx;
  std::vector<std::string> sass;
};

struct kernel_view {
  std::string name;
  std::vector<source_row> rows; ///< in the order of lines; those without code are left out
};

/// Source, PTX and SASS side by side. Kernels are those of either listing.
std::vector<kernel_view> side_by_side(std::string_view source,
                                      const std::vector<kernel_listing>& ptx,
                                      const std::vector<kernel_listing>& sass);

} // namespace kernelmill
