#pragma once

#include <string>
#include <string_view>

namespace kernelmill::search {

/// The techniques that a candidate's source uses, as words with '+' between, in one fixed order:
/// "simd+threads", "shared_memory+tensor_cores"; "plain" when it uses none. Candidates of one niche
/// compete with each other alone, so that a slower way is kept as long as it is the best of its
/// kind. It is read off the text: code that is never run counts, too.
std::string niche_of(std::string_view source);

} // namespace kernelmill::search
