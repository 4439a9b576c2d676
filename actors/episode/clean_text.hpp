#pragma once

// Text from policies, compilers and candidates is data: before it goes into a prompt or on a
// screen it loses control bytes and terminal sequences, and what is not UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace kernelmill {

/// Returns the offset of the first byte that is NUL or not UTF-8; npos when all is well.
size_t first_bad_byte(std::string_view text) noexcept;

/// Appends `text` without control bytes (newline and tab stay) and terminal sequences; '?'
/// stands for each byte that is not UTF-8. Stops after `max_bytes` and says that it was cut.
void append_clean(std::string& out, std::string_view text, size_t max_bytes);

} // namespace kernelmill
