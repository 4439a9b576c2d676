#pragma once

// INTERNAL to this folder: what readers of sanitizers' reports share.

#include <string>
#include <string_view>

#include "gpu/profiler/sanitizer_report.hpp"

namespace kernelmill::sanitizer_parts {

inline constexpr size_t longest_words = 400;
inline constexpr size_t most_others = 8;

inline bool has_words(std::string_view text, std::string_view words) {
  return text.find(words) != text.npos;
}

inline bool take_prefix(std::string_view& x, std::string_view prefix) {
  if (!x.starts_with(prefix)) return false;
  x.remove_prefix(prefix.size());
  return true;
}

inline std::string cut(std::string_view x, size_t limit = longest_words) {
  return std::string{x.substr(0, limit)};
}

/// The number at the beginning, 0 where there is none. "1,024" is how tools write 1024.
uint64_t count_at(std::string_view x);

/// The number behind the first of these words, 0 where they are not there.
uint64_t count_after(std::string_view x, std::string_view words);

/// "/a/b/kernel.cu:14"; false when it does not end with a line.
bool take_file(std::string_view x, code_place& to);

/// Adds a finding that has words, or counts it to one that is the same; then it is empty. Of more
/// than 64, errors stay.
void keep(sanitizer_report& report, sanitizer_finding& x);

} // namespace kernelmill::sanitizer_parts
