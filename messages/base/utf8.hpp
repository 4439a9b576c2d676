#pragma once

// UTF-8 as the Unicode standard defines it: overlong forms, surrogates and values above U+10FFFF
// are none. The one place that decides it, for what is logged, shown, prompted and stored.

#include <cstddef>
#include <string_view>

namespace kernelmill {

/// Returns the length of the UTF-8 sequence at the front of `text`, or 0 when there is none.
/// REQUIRES: !text.empty()
size_t utf8_length(std::string_view text) noexcept;

/// Returns the character of one whole sequence, as utf8_length measured it.
char32_t utf8_character(std::string_view sequence) noexcept;

/// Whether a byte goes on with a sequence rather than beginning one.
constexpr bool continues_utf8(char x) noexcept {
  return (static_cast<unsigned char>(x) & 0xc0) == 0x80;
}

/// True when all of `text` is UTF-8.
bool is_utf8(std::string_view text) noexcept;

/// Returns at most `limit` bytes of `text`, never half a sequence.
std::string_view utf8_prefix(std::string_view text, size_t limit) noexcept;

} // namespace kernelmill
