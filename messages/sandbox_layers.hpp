#pragma once

// The sandbox's layers by name, and sets of them as numbers, which travel beside each job.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

/// In an order that both ends of a wire agree on: append, never insert.
inline constexpr std::array<std::string_view, 8> sandbox_layer_names{
    "namespaces", "seccomp",    "cgroup_memory", "cgroup_pids",
    "rlimits",    "no_network", "separate_user", "landlock"};

/// The layers that stand where nothing else is said.
inline constexpr uint32_t all_layers = ~uint32_t{0};

/// One bit for each name that is known.
inline uint32_t layer_bits(const std::vector<std::string>& names) {
  uint32_t result = 0;
  for (size_t i = 0; i < sandbox_layer_names.size(); ++i)
    for (const auto& name : names)
      if (name == sandbox_layer_names[i]) result |= uint32_t{1} << i;
  return result;
}

/// Those of `wanted` that are not in `there`.
inline std::vector<std::string> layers_missing(const std::vector<std::string>& wanted,
                                               const std::vector<std::string>& there) {
  std::vector<std::string> result;
  for (const auto& name : wanted)
    if (std::find(there.begin(), there.end(), name) == there.end()) result.push_back(name);
  return result;
}

} // namespace kernelmill
