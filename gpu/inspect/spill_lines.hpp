#pragma once

// Where a kernel spills registers. Registers are given out after PTX, so that only a disassembler
// knows.

#include <string>
#include <vector>

#include "gpu/inspect/card_lines.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/diagnostics.hpp"

namespace kernelmill {

/// Remarks as spill_remark() of gpu/profiler writes them, at most six a kernel, of a build that is
/// listed already.
std::vector<diagnostic> spill_remarks(const std::vector<kernel_resources>& kernels,
                                      const listed_text& text);

/// The same of a source. Builds it once more, with a table of lines, so that what is timed has
/// none. Empty without nvcc or nvdisasm, and where that build fails: it is advice.
std::vector<diagnostic> find_spill_lines(sandbox& walls, const std::string& source,
                                         const std::string& architecture);

} // namespace kernelmill
