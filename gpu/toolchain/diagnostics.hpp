#pragma once

// The words of g++, as, and ld, made fit for a reader who knows one file: kernel.cpp.

#include <cstdint>
#include <string>
#include <vector>

namespace kernelmill {

struct diagnostic {
  std::string file; ///< "kernel.cpp", a system header, or empty (linker)
  uint32_t line = 0;
  uint32_t column = 0;
  std::string severity; ///< "error", "warning", "note"
  std::string message;
};

/// Finds errors, warnings and notes, in order; at most 100.
std::vector<diagnostic> parse_diagnostics(const std::string& text);

/// Makes the text valid UTF-8 without control characters, takes out the paths of the sandbox, and
/// cuts it after the last whole line within `limit` bytes, saying so.
std::string clean_log(const std::string& text, size_t limit);

} // namespace kernelmill
