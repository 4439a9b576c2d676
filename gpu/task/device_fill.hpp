#pragma once

// The distributions that a GPU makes by itself, at its timed shape: those where each element can be
// made without the others. What needs a whole row or a whole tensor only the host makes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/task/task.hpp"

namespace kernelmill {

struct device_fill {
  unsigned kind = 0;  ///< as in gpu/referee/device/kernels.cu
  float scale = 1.0f; ///< of "normal" and its like
};

/// Nothing when a GPU cannot fill a tensor of this type so.
std::optional<device_fill> find_device_fill(std::string_view distribution, dtype type) noexcept;

/// The names for one type, for suggestions.
std::vector<std::string> device_distributions(dtype type);

} // namespace kernelmill
