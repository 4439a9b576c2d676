#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kernelmill {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`, case ignored.
size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the choice closest to `word`, or nothing when none is close enough to be meant: at most
/// a third of the letters differ, or `word` is a prefix or a last component of the choice.
std::string closest(std::string_view word, std::span<const std::string> choices);

/// Returns "; did you mean 'x'?" or an empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string> choices);

} // namespace kernelmill
