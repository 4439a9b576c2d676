#pragma once

// The text that is compiled for one source of an extension: what torch's load_inline writes into
// main.cpp and cuda.cu, with line numbers of the candidate's own strings.

#include <string>
#include <vector>

#include "gpu/toolchain/torch_request.hpp"

namespace kernelmill {

/// The text of `request.sources[index]`, whole.
std::string translation_unit(const extension_request& request, size_t index);

/// The name that diagnostics give that source: "relu.cpp_sources", "relu.cuda_sources", or the
/// file's own name.
std::string shown_source_name(const extension_request& request, size_t index);

/// Macros that tell the slim headers what the text mentions, such as
/// -DKERNELMILL_WANTS_DISPATCH.
std::vector<std::string> slim_macros(const std::string& text);

/// False for text that the slim headers cannot serve, so that they are not even tried.
bool may_be_slim(const std::string& text);

} // namespace kernelmill
