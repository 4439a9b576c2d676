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

} // namespace kernelmill
