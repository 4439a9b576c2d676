#pragma once

// Code of a GPU as text, by kernel, each instruction with the line of source that it comes from.
// Plain functions on what nvcc, nvdisasm and clang print.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/toolchain/diagnostics.hpp"

namespace kernelmill {

struct code_line {
  uint32_t source_line = 0; ///< of the candidate's file; 0: not known, or of a header alone
  std::string text;         ///< "ld.global.f32 %f1, [%rd4];", or the label "$L__BB0_1:"
  uint32_t address = 0;     ///< within the kernel, of SASS alone
  std::optional<uint32_t> live = {}; ///< general registers that hold a value there, if known
};

struct kernel_listing {
  std::string name; ///< demangled
  std::vector<code_line> lines;
};

/// Reads PTX that was made with -lineinfo. `file` is the name of the candidate's source in it.
std::vector<kernel_listing> read_ptx(std::string_view text, std::string_view file);

/// Reads what `nvdisasm -gi -c` prints of a cubin; of `cuobjdump --dump-sass`, which knows no
/// lines, the instructions. NOPs that fill a kernel up to its end are left out.
std::vector<kernel_listing> read_sass(std::string_view text, std::string_view file);

/// Whether a listing has as many kernels or lines as are read, so that there may be more.
bool is_full(const std::vector<kernel_listing>& x);

/// Adds to listings of SASS how many general registers are live at each instruction, out of what
/// `nvdisasm -c -lrm count` prints of the same cubin. nvdisasm prints lines or live registers,
/// never both, so that the two are joined by kernel and address.
void add_live_registers(std::string_view text, std::vector<kernel_listing>& sass);

/// What `cuobjdump --dump-resource-usage` tells of kernels. Spills it does not tell.
std::vector<kernel_resources> read_resource_usage(std::string_view text);

/// Reads GCN assembly that clang wrote with -gline-tables-only: kernels, and functions that are
/// called. What was inlined from a header has no line: the table has none of the call.
std::vector<kernel_listing> read_gcn(std::string_view text, std::string_view file);

/// What an AMD kernel takes, by its metadata; what its comments alone tell is 0 where a newer
/// compiler says it otherwise.
struct gcn_resources {
  std::string name; ///< demangled
  uint32_t vgprs = 0, agprs = 0, sgprs = 0;
  uint32_t vgpr_spills = 0, sgpr_spills = 0; ///< registers
  uint32_t scratch_bytes = 0;                ///< a thread
  uint32_t lds_bytes = 0;                    ///< static, a block
  uint32_t wavefront = 0;                    ///< threads
  uint32_t waves = 0;                        ///< that a SIMD holds at once, by registers and LDS
  uint32_t code_bytes = 0;
};

std::vector<gcn_resources> read_gcn_resources(std::string_view text);

/// How many instructions of a listing do what: "global memory", "shared memory", "local memory",
/// "tensor cores", "floating point", "double precision", "integer", "control", "barriers", "other";
/// of an AMD GPU also "matrix cores", "scalar memory", "scalar arithmetic", "moves", "waits".
std::map<std::string, uint32_t> instruction_mix(const kernel_listing& x);

/// One line of source with what became of it.
struct source_row {
  uint32_t line = 0; ///< 0: instructions that no line is known of
  std::string source;
  std::vector<std::string> ptx;
  std::vector<std::string> sass;
  std::vector<std::string> gcn;
  std::vector<std::optional<uint32_t>> sass_live; ///< of each of `sass`

  /// The most registers that are live at an instruction of this line; nothing where none is known.
  std::optional<uint32_t> live() const;
};

struct kernel_view {
  std::string name;
  std::vector<source_row> rows; ///< in the order of lines; those without code are left out
};

/// Source and listings side by side. Kernels are those of any listing.
std::vector<kernel_view> side_by_side(std::string_view source,
                                      const std::vector<kernel_listing>& ptx,
                                      const std::vector<kernel_listing>& sass,
                                      const std::vector<kernel_listing>& gcn = {});

} // namespace kernelmill
