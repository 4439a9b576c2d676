#pragma once

// Compiles a source for looking at, in the sandbox. What is timed is built apart.

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/judging/inspecting/inspected.hpp"
#include "messages/error.hpp"

namespace kernelmill::inspecting {

/// CUDA C++ for "sm_90", or HIP for "gfx90a", by the architecture. A source that does not compile
/// is an answer. Errors: "toolchain_missing", "unsupported_architecture".
expected<inspected> inspect_source(sandbox& walls, std::string source,
                                   const std::string& architecture);

/// A Python module, with the compilers, the interpreter and the cache of `options`. `problem` is
/// the folder of the problem that it answers; empty: Triton's kernels are not compiled.
expected<inspected> inspect_module(sandbox& walls, const std::string& source,
                                   const std::string& problem, toolchain_options options);

/// What was listed of a module that was compiled.
inspected of_module(sandbox& walls, const listing_tools& tools, const listed_module& x,
                    const std::string& source, const std::string& architecture);

} // namespace kernelmill::inspecting
