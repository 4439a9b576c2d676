#pragma once

// Changes that an answer describes in place of a whole program: a unified diff, or blocks of SEARCH
// and REPLACE. Nothing is guessed and nothing is half done: what a change says was there must be
// there, byte for byte.

#include <optional>
#include <string>
#include <string_view>

#include "messages/error.hpp"
#include "messages/unified_diff.hpp"

namespace kernelmill {

/// Whether a text has a block of SEARCH and REPLACE.
bool looks_like_search(std::string_view text);

/// The text with blocks applied, in their order:
///   <<<<<<< SEARCH
///   (lines that are there exactly once)
///   =======
///   (lines in their place)
///   >>>>>>> REPLACE
/// Errors: class policy, "bad_patch" and "patch_failed", with the block.
expected<std::string> apply_search(std::string_view blocks, std::string_view base);

/// A source of one file with a change applied that a policy wrote in either form, whatever its diff
/// calls the file. Errors: class policy, "bad_patch" and "patch_failed".
expected<std::string> apply_patch(std::string_view patch, std::string_view source);

/// What stands in a text between <PATCH> and </PATCH>, without a fence around it; nothing where the
/// text has no such part, or more than one.
std::optional<std::string_view> patch_of_answer(std::string_view text);

} // namespace kernelmill
