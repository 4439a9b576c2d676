#pragma once

// Text from policies, compilers and candidates is data: before it goes into a prompt or on a
// screen it loses control bytes and terminal sequences, and what is not UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace kernelmill {

/// Returns the offset of the first byte that is NUL or not UTF-8; npos when all is well.
size_t first_bad_byte(std::string_view text) noexcept;

/// Puts a blank into each mark with which chat templates begin and end turns (`<|im_end|>`,
/// `[INST]`), in what stands in `text` from `begin` on: a tokenizer would take it for the mark
/// itself, and what follows for words of another speaker.
void disarm_turn_marks(std::string& text, size_t begin = 0);

/// Appends `text` without control bytes (newline and tab stay) and terminal sequences; '?'
/// stands for each byte that is not UTF-8. Stops after `max_bytes` and says that it was cut. Marks
/// of turns are disarmed, which takes a byte each.
void append_clean(std::string& out, std::string_view text, size_t max_bytes);

} // namespace kernelmill
