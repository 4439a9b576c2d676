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

/// Whether clients and their keys may be called so: letters, digits, '.', '_' and '-', up to
/// `most` of them.
inline bool is_label(std::string_view text, size_t most = 128) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), allowed);
}

/// Whether a machine may be called so: as a label, and neither '.' nor '-' first. Such a name is no
/// path, no option, and no control sequence.
inline bool is_host_like_name(std::string_view text, size_t most = 200) {
  return is_label(text, most) && text.front() != '.' && text.front() != '-';
}

} // namespace kernelmill
