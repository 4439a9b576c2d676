#pragma once

#include <algorithm>
#include <string_view>

namespace kernelmill {

/// Whether nodes, policy servers and versions of weights may be called so: up to 200 printable
/// characters without blanks.
inline bool is_plain_name(std::string_view text) {
  constexpr size_t most = 200;
  return !text.empty() && text.size() <= most &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

/// Whether a machine may be called so: letters, digits, '.', '_' and '-', as in the names of hosts,
/// and neither '.' nor '-' first. Such a name is no path, no option, and no control sequence.
inline bool is_host_like_name(std::string_view text) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return is_plain_name(text) && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), allowed);
}

} // namespace kernelmill
