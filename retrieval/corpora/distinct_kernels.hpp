#pragma once

// Which kernels of several corpora repeat a better one.

#include <cstddef>
#include <vector>

#include "retrieval/corpora/kernel_example.hpp"

namespace kernelmill {

/// For each kernel whether another one of the same task and source stands for it: one with the same
/// text; or, among kernels of one reference (the same computation, else the same normalized code),
/// one that it nearly repeats. The one with the greatest speedup stays, of equal ones the first.
/// Of two tasks both stay, since the leak guard learns from an entry whose solution it is; of two
/// sources as well, since an entry names one licence. A query shows one of them.
///
/// Kernels of different references are compared as texts alone: what a compiler writes for two
/// operators differs in a line, and both are worth showing.
std::vector<bool> repeated_kernels(const std::vector<kernel_example>& all);

} // namespace kernelmill
