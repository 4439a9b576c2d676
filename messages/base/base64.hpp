#pragma once

// Bytes where only text can travel.

#include <optional>
#include <string>
#include <string_view>

namespace kernelmill {

/// With the plain alphabet, and filled up with '='.
std::string to_base64(std::string_view bytes);

enum class base64_letters : unsigned char {
  plain,
  any, ///< also those of addresses, '-' and '_'
};

/// Nothing, where the text holds other letters; what fills it up may be missing.
std::optional<std::string> from_base64(std::string_view text,
                                       base64_letters letters = base64_letters::plain);

} // namespace kernelmill
