#pragma once

// What a compiler makes of a source: counted, and compared with what it makes of another. Nothing
// of it is run. Names, comments, the order and what is added to a copy of the other change nothing.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/toolchain/checked_build.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Of a function for the CPU and all that it refers to, or of the kernels of a GPU.
struct compiled_code {
  unsigned instructions = 0;
  unsigned vector_instructions =
      0; ///< arithmetic on several values at once; on a GPU wide accesses
  unsigned divisions = 0;
  unsigned calls = 0;
  unsigned branches = 0; ///< conditional ones
  /// For each stretch between jumps its instructions, sorted, without what only moves registers.
  std::vector<std::vector<std::string>> blocks;
};

/// Reads x86-64 assembly as g++ writes it, of a function and all that it refers to, or of all
/// functions where its name is empty; what inline assembly says is passed over.
compiled_code read_host_code(std::string_view assembly, const std::string& function);

/// Reads PTX as nvcc writes it.
compiled_code read_device_code(std::string_view ptx);

/// The share of a starter's instructions that stand in stretches which a candidate has, too: 1 for
/// a copy with other names, some 0.3 for the same results computed in another way.
double kept_share(const compiled_code& starter, const compiled_code& candidate);

/// Plain keeps the structure of the source, without what vectorizes and unrolls; `as_judged` is
/// optimized as candidates are.
enum class code_build : unsigned char { plain, as_judged };

/// Of the two one is used: a source for the CPU needs the first, one for a GPU the architecture.
struct code_compilers {
  host_compiler host = {};
  build_target device = {}; ///< without an architecture: a CPU
};

/// Compiles in the sandbox. Fails with class candidate where the source does not compile so, or
/// says more than can be compared (a plain build of inline assembly, more than 8 MiB), with
/// "tool_missing" where there is no nvcc, or on a machine whose assembly is not read.
expected<compiled_code> compile_code(sandbox& walls, const code_compilers& by, code_build how,
                                     const std::string& source, const std::string& function,
                                     int deadline_ms);

} // namespace kernelmill
