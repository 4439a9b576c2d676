#pragma once

// A build for looking at: the same source and optimization as what is timed, with a line table
// beside. What is timed is built apart and has none.

#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct listing_tools {
  std::string nvcc;
  std::string nvdisasm;  ///< empty: not found
  std::string cuobjdump; ///< empty: not found
};

/// What stands beside nvcc, else on PATH. nvcc is empty where there is none.
listing_tools find_listing_tools();

struct listed_build {
  bool compiled = false;
  std::string log;
  std::string ptx;
  std::string cubin;
  std::string sass;                      ///< nvdisasm's or cuobjdump's words; empty: see `missing`
  std::vector<kernel_resources> kernels; ///< by ptxas
  std::vector<std::string> missing;      ///< what could not be made, and why
};

/// What a disassembler says of a cubin; empty, with the reason in `missing`, where there is none or
/// it fails.
std::string disassemble(sandbox& walls, const listing_tools& tools, const std::string& cubin,
                        std::vector<std::string>& missing);

/// What nvdisasm says of live registers, for add_live_registers(). Empty without nvdisasm, of which
/// disassemble() told, and with the reason in `missing` where it fails.
std::string life_ranges(sandbox& walls, const listing_tools& tools, const std::string& cubin,
                        std::vector<std::string>& missing);

/// What cuobjdump says of the registers and memory of a cubin's kernels; empty where there is none.
std::string resource_usage(sandbox& walls, const listing_tools& tools, const std::string& cubin);

inline constexpr const char* listed_source_name = "kernel.cu";

/// Compiles in the sandbox. A source that does not compile is an answer. Fails with
/// "toolchain_missing" (infrastructure) without nvcc.
expected<listed_build> build_listing(sandbox& walls, const listing_tools& tools,
                                     const std::string& source, const std::string& architecture);

} // namespace kernelmill
