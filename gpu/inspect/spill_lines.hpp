#pragma once

// Where a kernel spills registers. Registers are given out after PTX, so that only a disassembler
// knows.

#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/diagnostics.hpp"

namespace kernelmill {

/// Remarks as spill_remark() of gpu/profiler writes them, at most six a kernel. Builds the source
/// once more, with a table of lines, so that what is timed has none. Empty without nvcc or
/// nvdisasm, and where that build fails: it is advice.
std::vector<diagnostic> find_spill_lines(sandbox& walls, const std::string& source,
                                         const std::string& architecture);

} // namespace kernelmill
