#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "launch/cli/command.hpp"
#include "launch/cli/terminal.hpp"

namespace kernelmill::commands {

/// Reads "0,1,1.5" of an option; T is double or uint64_t. Errors: "usage" when an entry is no
/// number or below `low`.
template <class T>
expected<std::vector<T>> number_list(const cli::invocation& in, const char* command,
                                     const char* option, T low) {
  std::vector<T> result;
  const auto& text = in.value(option);
  for (size_t at = 0; at <= text.size();) {
    auto comma = std::min(text.find(',', at), text.size());
    T x{};
    auto [end, code] = std::from_chars(text.data() + at, text.data() + comma, x);
    bool read = code == std::errc{} && end == text.data() + comma;
    if constexpr (std::is_floating_point_v<T>) read = read && std::isfinite(x);
    if (!read || x < low)
      return configuration_error(
          "usage",
          fmt::format("failed to run '{}': {} takes {} from {} with commas between, not '{}'",
                      command, option, std::is_floating_point_v<T> ? "numbers" : "whole numbers",
                      low, cli::clean(text)),
          fmt::format("such as {} {}", option, std::is_floating_point_v<T> ? "0,1,2" : "1,5"));
    result.push_back(x);
    at = comma + 1;
  }
  return result;
}

} // namespace kernelmill::commands
