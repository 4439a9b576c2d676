#pragma once

// Servers put a model's bytes into JSON, and not all of them do it right: a lone surrogate, bytes
// that are no UTF-8, control bytes as they are, NaN for a log-probability. Such an answer came
// whole, and what it says can be read but for these places.

#include <string>
#include <string_view>

namespace kernelmill {

/// Stands in a mended string where bytes were no character. It is a code point (U+FDD0) that
/// Unicode keeps out of texts.
inline constexpr std::string_view no_character = "\xEF\xB7\x90";

/// The text as JSON, where mending these places makes it so: within strings, no_character for a
/// lone surrogate and for a byte that is no UTF-8, an escape for a control byte, two backslashes
/// for one that escapes nothing; elsewhere, null for NaN and Infinity.
std::string mended_json(std::string_view text);

/// Puts U+FFFD where a string was mended; false when it was not.
bool show_mended(std::string& text);

} // namespace kernelmill
