#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kernelmill {

/// The difference of two texts as `diff -u` writes it, with `context` equal lines around each
/// change; empty when they are equal. Texts that differ in more than some thousand lines, or whose
/// comparison would take more than a fraction of a second, are shown as one change.
std::string unified_diff(std::string_view a, std::string_view b, const std::string& name_of_a,
                         const std::string& name_of_b, size_t context = 3);

/// The change of one file as `git diff` writes it, so that `git apply` makes `after` of `before`.
std::string unified_diff(const std::string& before, const std::string& after,
                         const std::string& name);

} // namespace kernelmill
