#pragma once

// Changes that an answer describes in place of a whole program: a unified diff, or blocks of SEARCH
// and REPLACE. Nothing is guessed and nothing is half done: what a change says was there must be
// there, byte for byte.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

struct diff_line {
  char kind = ' ';  ///< ' ' context, '-' removed, '+' added
  std::string text; ///< with its newline, unless the file ends without one
};

struct diff_hunk {
  size_t old_begin = 0; ///< line from 1; 0: of a file that is not there
  size_t new_begin = 0;
  std::vector<diff_line> lines;
};

enum class file_change : unsigned char { modify, create, remove };

struct file_diff {
  std::string path; ///< below the candidate's folder, without "a/" or "b/"
  file_change change = file_change::modify;
  std::vector<diff_hunk> hunks;
};

/// Whether a text begins as a unified diff does.
bool looks_like_diff(std::string_view text);

/// Reads a unified diff of one or more files. Line counts in its @@ lines are not believed, as with
/// `git apply --recount`: models miscount. Renames, modes, binary parts and paths that leave the
/// folder are refused. Errors: class policy, "bad_patch".
expected<std::vector<file_diff>> parse_unified_diff(std::string_view text);

/// The text with the hunks of one file applied, by the rules of `git apply`: where context is, near
/// the line that is named, without fuzz. Errors: class policy, "patch_failed", with the hunk.
expected<std::string> apply_diff(const file_diff& change, std::string_view base);

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
