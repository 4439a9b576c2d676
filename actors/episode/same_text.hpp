#pragma once

// How much of a text is another's, where no compiler's output can be compared.

#include <optional>
#include <string_view>

namespace kernelmill {

/// From 0 to 1: the words of both that stand in the same order, by the words of both. Comments and
/// spaces do not count, and each name of one may stand for one of the other. Nothing of long texts.
std::optional<double> text_in_common(std::string_view starter, std::string_view answer,
                                     bool python);

} // namespace kernelmill
