#pragma once

#include <string_view>

namespace kernelmill {

/// Why a correct candidate is not profiled; empty: it is. What a profile compares with are the
/// peaks of the host's cores, which say nothing of a GPU's work.
std::string_view unprofiled_reason(std::string_view backend, bool torch);

} // namespace kernelmill
