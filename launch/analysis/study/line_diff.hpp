#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kernelmill::study {

/// The difference of two texts as `diff -u` writes it, with `context` equal lines around each
/// change; empty when they are equal. Texts that differ in more than some thousand lines are shown
/// as one change, so that time and memory stay bounded.
std::string unified_diff(std::string_view a, std::string_view b, const std::string& name_of_a,
                         const std::string& name_of_b, size_t context = 3);

} // namespace kernelmill::study
