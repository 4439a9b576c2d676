#pragma once

// Texts as lines with their ends.

#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    auto end = text.find('\n');
    auto size = end == text.npos ? text.size() : end + 1;
    result.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return result;
}

/// A line with "\n" where it had "\r\n".
inline std::string with_newline(std::string_view line) {
  if (line.ends_with("\r\n")) return std::string{line.substr(0, line.size() - 2)} + '\n';
  return std::string{line};
}

} // namespace kernelmill
