#pragma once

// Fenced code blocks as Markdown has them: at least three ` or ~ on a line of their own, closed
// by a run of the same character that is no shorter.

#include <optional>
#include <string>
#include <string_view>

namespace kernelmill {

struct fence {
  std::string_view code; ///< between the fences
  std::string_view info; ///< first word behind the opening fence
  size_t end = 0;        ///< offset behind the block
  bool closed = true;
};

/// Returns the first block at or behind `from`; an unclosed one reaches to the end of the text.
std::optional<fence> next_fence(std::string_view text, size_t from);

/// Reads a text that is one block from its first byte to its last, also when it stands on a
/// single line or its closing fence follows code on the same line.
std::optional<fence> only_fence(std::string_view text);

/// Returns "cpp", "cuda", "python", another word in lower case, or nothing.
std::string language_of(std::string_view info);

/// True when the word names a language that a kernel may be written in.
bool is_code_language(std::string_view info);

/// Cuts blank lines in front and white space behind; keeps the indentation of the first line.
std::string_view trim_lines(std::string_view text);

} // namespace kernelmill
