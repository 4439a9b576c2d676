#pragma once

// How deep a JSON text nests. The library that reads JSON takes any depth, and copies, compares and
// prints what it has read by recursion: a megabyte of `[` from a stranger ends the process there.
// So code that reads foreign JSON asks this first.

#include <cstddef>
#include <string_view>

namespace kernelmill {

/// What documents of ours and of others need is below 20.
inline constexpr size_t deepest_json = 256;

/// Whether lists and objects of `text` nest deeper than `most`. Also of texts that are no JSON;
/// what stands in quotes does not count.
bool nests_deeper(std::string_view text, size_t most = deepest_json) noexcept;

} // namespace kernelmill
